"""Functions and methods of torch's that say shortly what the ops say: none of them is an op of its own."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast as typed

from ..device.dtypes import BOOL, int64
from ..dispatch import op_registry
from ..dispatch.out_dtypes import check_out
from ..dispatch.overrides import taken_over
from ..dispatch.state import dispatch_state
from ..errors import check_flag, warn
from ..tensor import shapes
from ..tensor.base import TensorBase, storage_of
from ..tensor.layout import memory_format
from ..tensor.shapes import Size, one_or_several
from .creation.creation import empty
from .creation.ranges import arange
from .linalg.functions import linalg_vander
from .rearranging import flip
from .rules import cast, check_tensor
from .shape.copies import narrow_copy
from .shape.splitting import chunk, split, split_with_sizes
from .special.gamma import polygamma

if TYPE_CHECKING:
    from ..device.device import Device
    from ..device.dtypes import DType, Number
    from ..tensor.tensor import Tensor

__all__ = [
    "broadcast_shapes",
    "detach",
    "empty_permuted",
    "is_conj",
    "is_neg",
    "narrow_copy",
    "resolve_conj",
    "resolve_neg",
    "to_dlpack",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "vander",
]


@op_registry.defined_by(chunk)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return what :func:`chunk` does, as views that may be written to while gradients are recorded."""
    return _views_alone(chunk, input, chunks, dim)


@op_registry.defined_by(split)
def unsafe_split(
    input: Tensor, split_size: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Return what :func:`split` does, as views that may be written to while gradients are recorded.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(4, requires_grad=True) * 1
    >>> first, second = tp.unsafe_split(x, 2)
    >>> first.mul_(3.0).tolist()
    [3.0, 3.0]
    """
    return _views_alone(split, input, split_size, dim)


@op_registry.defined_by(split_with_sizes)
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Return what :func:`split_with_sizes` does, as views that may be written to while recording."""
    return _views_alone(split_with_sizes, input, split_sizes, dim)


def _views_alone(
    cut: Callable[..., tuple[Tensor, ...]], input: Tensor, given: Any, dim: int
) -> tuple[Tensor, ...]:
    """Return the parts that `cut` gives, to autograd no views, as in torch: a write is one part's history.

    It counts as a write to that part alone, so that others may have been saved.
    """
    parts = cut(input, given, dim)
    if input._state:
        for found in parts:
            if found._view is not None:
                dispatch_state.gradient.release_view(found)
                found._storage = storage_of(found.data)
    return parts


def broadcast_shapes(*shapes: Sequence[int] | int) -> Size:
    """Return the shape that all `shapes` broadcast to.

    Parameters
    ----------
    *shapes : sequence of int, or int
        An int n stands for ``(n,)``.

    Raises
    ------
    RuntimeError
        If two sizes of one dimension differ and neither is 1, or one is negative or no int.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.broadcast_shapes((2, 1), (3,), 1)
    Size([2, 3])
    """
    given = []
    for shape in shapes:
        try:
            given.append(tuple(map(operator.index, one_or_several(shape))))
        except TypeError:
            raise RuntimeError(
                "broadcast_shapes(): Input shapes should be of type ints, a tuple of ints, or a list "
                f"of ints, got {shape}"
            ) from None
        if any(size < 0 for size in given[-1]):
            raise RuntimeError(f"broadcast_shapes(): negative sizes do not broadcast: {shape}")
    return Size(_common(*given))


_common = shapes.broadcast_shapes


@op_registry.defined_by(linalg_vander)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix whose columns are powers of the vector `x`, by default the highest first.

    Parameters
    ----------
    x : Tensor
        ``(n,)``.
    N : int, optional
        How many columns; n by default.
    increasing : bool
        Whether the powers rise from left to right, as those of :func:`tensorplug.linalg.vander`.

    Raises
    ------
    RuntimeError
        If `x` is no vector or `N` is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.vander(tp.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    check_tensor(x, "vander", "x")
    if len(x._shape) != 1:
        raise RuntimeError(f"vander(): x must be a one-dimensional tensor, got {list(x._shape)}")
    count = x._shape[0] if N is None else N
    if count < 0:
        raise RuntimeError(f"vander(): N must be non-negative, got {N}")
    own = cast(x, int64) if x.dtype.category == BOOL else x
    powers: Any = linalg_vander(own, builtins.max(count, 1))[:, :count]
    return powers if increasing else flip(powers, (1,))


def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of any elements that lies in memory without gaps, its dimensions in a given order.

    Parameters
    ----------
    size : sequence of int
        The shape.
    physical_layout : sequence of int
        The dimensions from the one with the largest stride to the one with the smallest, counted
        from the front.

    Raises
    ------
    RuntimeError
        If `physical_layout` does not name each dimension once.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.empty_permuted((2, 3, 5), (1, 0, 2)).stride()
    (5, 10, 1)
    """
    if len(physical_layout) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    order = list(physical_layout)
    for position, dim in enumerate(order):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"empty_permuted(): Dimension out of range (expected to be between 0 and "
                f"{len(size) - 1}, but got {dim} at index {position}); they are counted from the front"
            )
        if dim in order[:position]:
            raise RuntimeError(f"empty_permuted(): Duplicate dim not allowed, got {order}")
    memory: Any = empty(
        [size[dim] for dim in order],
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
    )
    made = memory.permute([order.index(dim) for dim in range(len(size))]).detach()
    return typed("Tensor", made.requires_grad_(requires_grad))


def detach(input: Tensor) -> Tensor:
    """Return the method's result, see :meth:`tensorplug.Tensor.detach`."""
    given: Any = input
    if not isinstance(given, TensorBase):
        made = taken_over(detach, (input,))
        if made is not None:
            return made[0]
        check_tensor(input, "detach")
    return input.detach()


def is_conj(input: Tensor) -> bool:
    """Return whether ``conj()`` made the tensor, so that it shares its elements with another."""
    check_tensor(input, "is_conj")
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Return whether a negation is still to be done: never."""
    check_tensor(input, "is_neg")
    return False


def resolve_conj(input: Tensor) -> Tensor:
    """Return a copy if ``conj()`` made the tensor, else the tensor itself."""
    check_tensor(input, "resolve_conj")
    return input.resolve_conj()


def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: no negation is ever still to be done."""
    check_tensor(input, "resolve_neg")
    return input


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule that shares the tensor's memory; ``from_dlpack`` takes tensors directly.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(2)
    >>> y = tp.utils.dlpack.from_dlpack(tp.to_dlpack(x))
    >>> y[0] = 1.0
    >>> x
    tensor([1., 0.])
    """
    check_tensor(tensor, "to_dlpack", "tensor")
    return tensor.__dlpack__()


# --- methods ------------------------------------------------------------------------------------


def fill_diagonal_(self: Any, fill_value: Number, wrap: bool = False) -> Any:
    """Fill the main diagonal, in place.

    Parameters
    ----------
    fill_value : number
        The value.
    wrap : bool
        Whether the diagonal of a tall matrix starts anew below its end, one row further on.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions, or more and of different sizes.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(4, 2).fill_diagonal_(5, wrap=True)
    tensor([[5., 0.],
            [0., 5.],
            [0., 0.],
            [5., 0.]])
    """
    check_flag(wrap, "fill_diagonal_", "wrap")
    shape = self._shape
    if len(shape) < 2:
        raise RuntimeError(f"fill_diagonal_(): dimensions must be more than 1, got {len(shape)}")
    if len(shape) > 2:
        if len(set(shape)) > 1:
            raise RuntimeError(
                f"fill_diagonal_(): all dimensions must be of equal length, got {list(shape)}"
            )
        indices = arange(shape[0], device=self.device)
        return self.index_put_([indices] * len(shape), self.new_tensor(fill_value))
    rows, columns = shape
    step = columns + 1 if wrap else builtins.max(rows, 1)
    for start in range(0, rows, step):
        self[start : start + columns].diagonal().fill_(fill_value)
    return self


def dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions from the one with the largest stride to the one with the smallest.

    With `ambiguity_check` other orders must not fit as well; a list of memory formats says which alone count.
    """
    strides = self.stride()
    if type(ambiguity_check) is not bool and not (
        isinstance(ambiguity_check, list)
        and all([isinstance(f, memory_format) for f in ambiguity_check])
    ):
        raise TypeError(
            "dim_order(): The ambiguity_check argument must be a bool or a list of memory formats, got "
            f"{ambiguity_check!r}"
        )
    if ambiguity_check and (1 in self._shape or len(set(strides)) < len(strides)):
        formats = [] if ambiguity_check is True else ambiguity_check
        if [self.is_contiguous(memory_format=format) for format in formats].count(True) != 1:
            raise RuntimeError(
                "dim_order(): The tensor does not have unique dim order, or cannot map to exact one of the "
                f"given memory formats: size {list(self._shape)}, strides {strides}, formats {formats}"
            )
    return tuple(sorted(range(len(strides)), key=lambda dim: -strides[dim]))


def resize(self: Any, *sizes: Any) -> Any:
    """Return the elements in another shape: an old name of :meth:`reshape`, with a warning."""
    warn("non-inplace resize is deprecated: call reshape", UserWarning)
    return self.reshape(*sizes)


def polygamma_(self: Any, n: int) -> Any:
    """Replace each element by the `n`-th derivative of digamma there."""
    # The gradient needs the elements from before.
    result: Any = polygamma(n, self.clone() if self.requires_grad else self)
    check_out("polygamma_", self, result._key.dtype, result._key)
    return self.copy_(result)


def _div(self: Any, other: Any) -> Any:
    """Return ``self / other``: the name of Python 2 for it."""
    return self / other


def _rdiv(self: Any, other: Any) -> Any:
    """Return ``other / self``: the name of Python 2 for it."""
    return other / self


def _idiv(self: Any, other: Any) -> Any:
    """Divide in place: the name of Python 2 for ``self /= other``."""
    return self.div_(other)


def _long(self: Any) -> int:
    """Return the number as an int: the name of Python 2 for ``int(self)``."""
    return int(self)


def _nonzero(self: Any) -> bool:
    """Return whether the number is not zero: the name of Python 2 for ``bool(self)``."""
    return bool(self)


for _older in (_div, _rdiv, _idiv, _long, _nonzero):
    dispatch_state.add_method(f"_{_older.__name__}__", _older)

for _method in (
    narrow_copy, dim_order, fill_diagonal_, polygamma_, resize, unsafe_chunk, unsafe_split,
    unsafe_split_with_sizes,
):  # fmt: skip
    dispatch_state.add_method(_method.__name__, _method)
