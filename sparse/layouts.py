"""The layouts of sparse tensors."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.layout import layout, preserve_format, strided


class _SparseLayout(layout):
    """A layout that makes its tensors itself, and is pickled as a name of this module."""

    __slots__ = ()
    intercepts = True

    def compute(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what an op that makes tensors makes in this layout."""
        from .factories import made_in  # it needs this module

        return made_in(self, op, args, kwargs)

    def __reduce__(self) -> Any:
        return layout_named, (self.name,)


#: Coordinates of each element, and the elements.
sparse_coo: layout = _SparseLayout("sparse_coo")
#: The elements row by row, the column of each, and where each row begins.
sparse_csr: layout = _SparseLayout("sparse_csr")

_LAYOUTS = {known.name: known for known in (strided, sparse_coo, sparse_csr)}


def layout_named(name: str) -> layout:
    """Return the layout of a name, such as ``"sparse_coo"``.

    Raises
    ------
    NotImplementedError
        If there is none of that name here.
    """
    found = _LAYOUTS.get(name)
    if found is None:
        raise NotImplementedError(
            f"there are no tensors of layout {name}; there are those of {', '.join(_LAYOUTS)}"
        )
    return found


def check_no_format(name: str, memory_format: Any) -> None:
    """Raise RuntimeError for a memory format: there is none to choose from."""
    if memory_format not in (None, preserve_format):
        raise RuntimeError(
            f"{name}(): unsupported memory format option {memory_format}: only strided tensors have one"
        )
