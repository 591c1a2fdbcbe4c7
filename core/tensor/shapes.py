"""Shapes: the public ``Size`` and the arithmetic of dimensions, broadcasting and strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, overload

from ..device.dtypes import _shown_as, bool_, shown

Shape: TypeAlias = tuple[int, ...]


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple of ints that prints as ``Size([2, 3])``.

    Examples
    --------
    >>> Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, sizes: Iterable[Any] = ()) -> Self:
            """Return a size of what are ints, or 0-d tensors of one."""
            sizes = tuple(sizes)
            return tuple.__new__(cls, sizes if {*map(type, sizes)} <= {int} else as_ints(sizes))

    def numel(self) -> int:
        """Return the number of elements of a tensor of this size."""
        return math.prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | Size:
        item = tuple.__getitem__(self, key)
        return as_size(item) if isinstance(item, tuple) else item

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: SupportsIndex) -> Size:
        return as_size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        text = f"Size([{', '.join(map(str, self))}])"
        return text if _shown_as[0] == "tensorplug" else shown(text)

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[int, ...]]]:
        return Size, (tuple(self),)


#: Makes a size of a tuple that is known to hold ints.
as_size: Callable[[Shape], Size] = partial(tuple.__new__, Size)


def as_ints(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes as ints; TypeError for what is none."""
    for number, size in enumerate(sizes):
        if isinstance(size, float) or not hasattr(size, "__index__"):
            raise TypeError(
                f"Size() takes an iterable of 'int' (item {number} is {type(size).__name__!r})"
            )
    return tuple(map(index, sizes))


def one_or_several(value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple; also one int, NumPy's or a tensor without dimensions too."""
    if isinstance(value, int) or getattr(value, "shape", None) == ():
        return (value,)
    if isinstance(value, (str, bytes, dict, set)):
        raise TypeError(f"an int or a tuple of ints is expected, not {type(value).__name__}")
    return tuple(value)


def is_truth(value: Any) -> bool:
    """Return whether a value is a bool or a tensor of one: both have an ``__index__``, and are no numbers."""
    return isinstance(value, bool) or getattr(value, "dtype", None) is bool_


def as_shape(sizes: tuple[Any, ...], name: str) -> Shape:
    """Return the sizes given as ``f(2, 3)``, ``f((2, 3))`` or ``f(Size([2, 3]))`` as one tuple."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    for size in sizes:
        if type(size) is not int:
            break
    else:
        return sizes
    if type(sizes[0]) is bool:
        raise TypeError(
            f"{name}(): expected a tuple of ints, but found element of type bool at pos 0"
        )
    for size in sizes:
        if not hasattr(size, "__index__") or getattr(size, "dtype", None) is bool_:
            raise TypeError(
                f"{name}(): sizes must be ints, got {size!r} of type {type(size).__name__}"
            )
    return tuple([size.__index__() for size in sizes])


def given_sizes(sizes: tuple[Any, ...], named: Any, name: str, argument: str) -> Shape:
    """Return the sizes given as ``f(2, 3)``, ``f((2, 3))`` or ``f(argument=(2, 3))`` as one tuple.

    Raises
    ------
    TypeError
        If there are none, as ``f(())`` has, or two of them.
    """
    if named is None:
        if not sizes:
            raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')
        return as_shape(sizes, name)
    if sizes:
        raise TypeError(f"{name}() got multiple values for argument '{argument}'")
    if not isinstance(named, (tuple, list)):
        raise TypeError(
            f"{name}(): argument '{argument}' must be tuple of ints, not {type(named).__name__}"
        )
    return as_shape((named,), name)


def check_sizes(shape: Shape, name: str) -> Shape:
    """Return `shape`, or raise RuntimeError if a size in it is negative."""
    for size in shape:
        if size < 0:
            raise RuntimeError(
                f"{name}(): Trying to create tensor with negative dimension {size}: {list(shape)}"
            )
    return shape


def normalize_dim(dim: int, ndim: int, name: str = "op") -> int:
    """Return `dim` counted from the front; raise IndexError if there is no such dimension.

    A bool is no dimension: ``x.all(True)`` meant ``keepdim=True``.

    A 0-d tensor counts as having one dimension here, as in torch.
    """
    bound = ndim or 1
    if type(dim) is int and 0 <= dim < bound:
        return dim
    try:
        position = dim.__index__()
    except AttributeError:
        raise TypeError(
            f"{name}(): dim must be an int, got {dim!r} of type {type(dim).__name__}"
        ) from None
    if dim is True or dim is False:
        raise TypeError(f"{name}(): dim must be an int, got {dim}, which is a bool")
    if not -bound <= position < bound:
        raise IndexError(
            f"{name}(): Dimension out of range (expected to be in range of "
            f"[{-bound}, {bound - 1}], but got {dim})"
        )
    return position + bound if position < 0 else position


def existing_dim(dim: int, ndim: int, name: str) -> int:
    """Return `dim` as :func:`normalize_dim` does, but refuse a 0-d tensor, which has none here."""
    if not ndim:
        raise IndexError(f"{name}(): Dimension specified as {dim} but tensor has no dimensions")
    return normalize_dim(dim, ndim, name)


def normalize_dims(
    dim: int | Iterable[int] | None, ndim: int, name: str = "op", *, empty_is_all: bool = True
) -> Shape:
    """Return one dim, several or None (all of them) as a sorted tuple without duplicates.

    Raises
    ------
    IndexError
        If a dimension does not exist.
    RuntimeError
        If one appears twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int and 0 <= dim < ndim:
        return (dim,)
    given: Any = dim
    if getattr(dim, "ndim", None) == 0:
        given = index(given)  # a tensor of one int
    if isinstance(given, (tuple, list, range)) or getattr(given, "ndim", None) == 1:
        dims = [normalize_dim(d, ndim, name) for d in given]
        if not dims and empty_is_all:
            return tuple(range(ndim))
    else:
        dims = [normalize_dim(given, ndim, name)]
    if len(set(dims)) != len(dims):
        repeated = next(d for d in dims if dims.count(d) > 1)
        raise RuntimeError(f"{name}(): dim {repeated} appears multiple times in the list of dims")
    return tuple(sorted(dims)) if ndim else ()


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """Return the shape that all `shapes` broadcast to.

    Raises
    ------
    RuntimeError
        If two sizes of one dimension differ and neither is 1.

    Examples
    --------
    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    ndim = max((len(shape) for shape in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        offset = ndim - len(shape)
        for position, size in enumerate(shape, offset):
            if size != 1 and size != result[position]:
                if result[position] != 1:
                    raise RuntimeError(
                        f"The size of tensor a ({result[position]}) must match the size of tensor b "
                        f"({size}) at non-singleton dimension {position}: the shapes "
                        f"{' and '.join(str(list(s)) for s in shapes)} do not broadcast"
                    )
                result[position] = size
    return tuple(result)


def reduced_shape(shape: Shape, dims: Shape, keepdim: bool) -> Shape:
    """Return `shape` after a reduction over `dims` (canonical)."""
    if keepdim:
        return tuple([1 if i in dims else size for i, size in enumerate(shape)])
    return tuple([size for i, size in enumerate(shape) if i not in dims])


def infer_size(shape: Shape, numel: int, name: str) -> Shape:
    """Return `shape` with a single -1 replaced so that it holds `numel` elements."""
    if -1 not in shape:
        if math.prod(shape) != numel or min(shape, default=0) < 0:
            raise RuntimeError(
                f"{name}(): shape '{list(shape)}' is invalid for input of size {numel}"
            )
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError(f"{name}(): only one dimension can be inferred, got {list(shape)}")
    known = math.prod([size for size in shape if size != -1])
    if known == 0 and numel == 0:
        raise RuntimeError(
            f"{name}(): cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if known <= 0 or numel % known:
        raise RuntimeError(f"{name}(): shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple([numel // known if size == -1 else size for size in shape])


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """Return the strides, in elements, of a row-major tensor of `shape`."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Return whether `strides` lay `shape` out row by row without gaps."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def view_strides(shape: Shape, strides: Shape, target: Shape) -> Shape | None:
    """Return the strides that show memory of (`shape`, `strides`) as `target`, or None.

    Runs of dimensions that lie contiguously in memory are merged, and each run is split into the
    dimensions of `target` that cover it; where a target dimension spans two runs there is no view.
    """
    if math.prod(shape) == 0:
        return contiguous_strides(target) if shape != target else strides
    runs: list[tuple[int, int]] = []  # (elements, stride of the innermost) of each mergeable run
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == stride * size:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    result = [0] * len(target)
    left, step = runs.pop() if runs else (1, 1)
    for i in range(len(target) - 1, -1, -1):
        size = target[i]
        if size != 1 and left == 1 and runs:
            left, step = runs.pop()
        if left % size:
            return None
        result[i] = step
        step *= size
        left //= size
    return tuple(result)
