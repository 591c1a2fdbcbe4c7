"""The second forms of views, ``expand_copy`` and others: what the view shows, in memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...device import dtypes
from ...dispatch import op_registry
from ...dispatch.out_variants import warn_of_resize
from ...tensor.shapes import normalize_dim
from ..copying import copied
from ..indexing.indexing import narrow, select
from ..rules import check_tensor
from ..strided import as_strided, diagonal, unfold, view_as_complex, view_as_real
from .dimension_order import permute, t, transpose
from .expansion import expand
from .shape import squeeze, unsqueeze, view
from .splitting import split, split_with_sizes, unbind

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "alias_copy",
    "as_strided_copy",
    "detach_copy",
    "diagonal_copy",
    "expand_copy",
    "narrow_copy",
    "permute_copy",
    "select_copy",
    "slice_copy",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "t_copy",
    "transpose_copy",
    "unbind_copy",
    "unfold_copy",
    "unsqueeze_copy",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
]


def _written(name: str, result: Any, out: Any, exact: bool = True, *, silent: bool = False) -> Any:
    """Return copies of what a view op returned, written to `out` where that is given."""
    several = isinstance(result, tuple)
    parts = result if several else (result,)
    if out is None:
        copies = tuple([copied(part) for part in parts])
        return copies if several else copies[0]
    targets = tuple(out) if several else (out,)
    for target in targets:
        check_tensor(target, name, "out")
    if len(targets) != len(parts):
        raise RuntimeError(f"{name}(): expected {len(parts)} tensors as out=, got {len(targets)}")
    for part, target in zip(parts, targets, strict=True):
        if exact and target.dtype is not part.dtype:
            raise RuntimeError(
                f"{name}(): Expected out tensor to have dtype {part.dtype.name}, but got "
                f"{target.dtype.name} instead"
            )
    for part, target in zip(parts, targets, strict=True):
        if not silent:
            warn_of_resize(name, target, part._shape)
        target.resize_(part.shape).copy_(part)
    return None if several else out


def _copying(view: Callable[..., Any], name: str, exact: bool = True) -> Callable[..., Any]:
    """Return the second form of a view op."""

    def copy(input: Tensor, *args: Any, out: Any = None, **options: Any) -> Any:
        return _written(f"{name}_copy", view(input, *args, **options), out, exact)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"Return a copy of what :func:`tensorplug.{name}` shows."
    return op_registry.defined_by(view)(copy)


as_strided_copy = _copying(as_strided, "as_strided")
diagonal_copy = _copying(diagonal, "diagonal")
permute_copy = _copying(permute, "permute")
select_copy = _copying(select, "select")
split_copy = _copying(split, "split", exact=False)
split_with_sizes_copy = _copying(split_with_sizes, "split_with_sizes")
squeeze_copy = _copying(squeeze, "squeeze")
t_copy = _copying(t, "t")
transpose_copy = _copying(transpose, "transpose")
unbind_copy = _copying(unbind, "unbind")
unfold_copy = _copying(unfold, "unfold")
unsqueeze_copy = _copying(unsqueeze, "unsqueeze")
view_as_complex_copy = _copying(view_as_complex, "view_as_complex")
view_as_real_copy = _copying(view_as_real, "view_as_real")


def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return a copy of a tensor."""
    check_tensor(input, "alias_copy")
    return _written("alias_copy", input, out)


def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return a copy of a tensor that has no history."""
    check_tensor(input, "detach_copy")
    return _written("detach_copy", input.detach(), out)


@op_registry.defined_by(expand)
def expand_copy(
    input: Tensor, size: Sequence[int], *, implicit: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return a copy of what :func:`tensorplug.Tensor.expand` shows; `implicit` has no effect."""
    return _written("expand_copy", expand(input, size), out)


def narrow_copy(
    input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of `length` positions of `input` along a dimension, from `start` on."""
    return _written("narrow_copy", narrow(input, dim, start, length), out, silent=True)


@op_registry.defined_by(view)
def view_copy(
    input: Tensor, size: Sequence[int] | dtypes.DType, *, out: Tensor | None = None
) -> Tensor:
    """Return a copy of what :func:`tensorplug.Tensor.view` shows, of another shape or dtype."""
    check_tensor(input, "view_copy")
    # What is copied need not lie so that it can be shown.
    shown = input.view(size) if isinstance(size, dtypes.DType) else input.reshape(size)
    return _written("view_copy", shown, out)


def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy of the slice ``start:end:step`` of a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.slice_copy(tp.arange(5), 0, 1, 5, 2)
    tensor([1, 3])
    """
    check_tensor(input, "slice_copy")
    dim = normalize_dim(dim, input.ndim, "slice_copy")
    if step <= 0:
        raise RuntimeError(f"slice_copy(): slice step must be positive, got {step}")
    shown = input[(*(slice(None),) * dim, slice(start, end, step))]
    return _written("slice_copy", shown, out)
