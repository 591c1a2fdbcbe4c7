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


class CompressedLayout(_SparseLayout):
    """A layout of matrices whose rows, or columns, are stored one after another.

    Attributes
    ----------
    by_rows : bool
        Whether rows are, rather than columns.
    blocked : bool
        Whether what is stored is blocks of one size, rather than elements.
    """

    __slots__ = ("blocked", "by_rows")

    def __init__(self, name: str, by_rows: bool, blocked: bool) -> None:
        super().__init__(name)
        self.by_rows = by_rows
        self.blocked = blocked

    @property
    def turned(self) -> CompressedLayout:
        """The layout of the transpose."""
        return next(
            each
            for each in COMPRESSED
            if each.blocked == self.blocked and each.by_rows != self.by_rows
        )

    @property
    def names(self) -> tuple[str, str]:
        """What the indices are called: those of where each row or column begins, and the plain ones."""
        return ("crow_indices", "col_indices") if self.by_rows else ("ccol_indices", "row_indices")


#: Coordinates of each element, and the elements.
sparse_coo: layout = _SparseLayout("sparse_coo")
#: The elements row by row, the column of each, and where each row begins.
sparse_csr: layout = CompressedLayout("sparse_csr", by_rows=True, blocked=False)
#: The elements column by column, the row of each, and where each column begins.
sparse_csc: layout = CompressedLayout("sparse_csc", by_rows=False, blocked=False)
#: Blocks of one size, row of blocks by row of blocks.
sparse_bsr: layout = CompressedLayout("sparse_bsr", by_rows=True, blocked=True)
#: Blocks of one size, column of blocks by column of blocks.
sparse_bsc: layout = CompressedLayout("sparse_bsc", by_rows=False, blocked=True)

COMPRESSED: Any = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
_LAYOUTS = {known.name: known for known in (strided, sparse_coo, *COMPRESSED)}


def title(shown: layout) -> str:
    """Return what torch's errors call a layout, such as ``"SparseCsr"``."""
    return "Sparse" if shown is sparse_coo else shown.name.title().replace("_", "")


def not_of(name: str, kind: str, shown: layout) -> RuntimeError:
    """Return the error for a method that only tensors of another kind of layout have."""
    return RuntimeError(f"{name} expected {kind} tensor layout but got {title(shown)}")


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
