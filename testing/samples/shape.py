"""Records of views in another shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType

from ..records import ErrorSample, OpRecord, Sample

Samples = Callable[[Any, DType], Iterator[Sample]]
Errors = Callable[[Any], Iterator[ErrorSample]]


def calls(*cases: tuple[Any, ...]) -> Samples:
    """Return samples: each a shape (or a list of shapes) for tensors, then plain arguments."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for first, *rest in cases:
            options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            tensors = [make(*shape) for shape in (first if isinstance(first, list) else [first])]
            yield Sample(*tensors, *rest, **options)

    return samples


def sequences(*cases: tuple[Any, ...]) -> Samples:
    """Return samples whose first argument is a list of tensors of the given shapes."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for shapes, *rest in cases:
            yield Sample([make(*shape) for shape in shapes], *rest)

    return samples


def wrong(*cases: tuple[Any, ...]) -> Errors:
    """Return error samples: error, pattern, shape, plain arguments."""

    def errors(make: Any) -> Iterator[ErrorSample]:
        for error, match, first, *rest in cases:
            if isinstance(first, list):
                yield ErrorSample(Sample([make(*shape) for shape in first], *rest), error, match)
            else:
                yield ErrorSample(Sample(make(*first), *rest), error, match)

    return errors


def _sizes(function: Any) -> Any:
    """Return a reference that takes sizes one by one or as a sequence."""

    def reference(a: Any, *sizes: Any, **options: Any) -> Any:
        given = next(iter(options.values())) if options else sizes
        if len(given) == 1 and isinstance(given[0], (list, tuple)):
            given = given[0]
        return function(a, tuple(given))

    return reference


def _expand(a: Any, sizes: Any) -> Any:
    lead = len(sizes) - a.ndim
    return np.broadcast_to(a, [a.shape[d - lead] if s == -1 else s for d, s in enumerate(sizes)])


def _flatten(a: Any, start: int = 0, end: int = -1) -> Any:
    if not a.ndim:
        return a.reshape(1)
    start, end = start % a.ndim, end % a.ndim
    return a.reshape(*a.shape[:start], int(np.prod(a.shape[start : end + 1])), *a.shape[end + 1 :])


def _unflatten(a: Any, dim: int, sizes: Any) -> Any:
    dim %= a.ndim
    return a.reshape(*a.shape[:dim], *sizes, *a.shape[dim + 1 :])


def _squeeze(a: Any, dim: Any = None) -> Any:
    if dim is None:
        return np.squeeze(a)
    dims = [d % max(a.ndim, 1) for d in (dim if isinstance(dim, tuple) else (dim,))]
    return a.reshape([n for d, n in enumerate(a.shape) if n != 1 or d not in dims])


def _adjoint(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _sum_to_size(a: Any, *sizes: Any) -> Any:
    lead = a.ndim - len(sizes)
    dims = tuple([d for d in range(a.ndim) if d < lead or (sizes[d - lead] == 1 != a.shape[d])])
    # The sum of integers is int64, as for the op.
    return (np.sum(a, dims) if dims else a).reshape(sizes)


def _each(function: Any) -> Any:
    def reference(*tensors: Any) -> Any:
        made = [function(a) for a in tensors]
        return made[0] if len(made) == 1 else tuple(made)

    return reference


def _unbind(a: Any, dim: int = 0) -> Any:
    return tuple(np.moveaxis(a, dim, 0))


def _split_sizes(a: Any, sizes: Any, dim: int = 0) -> Any:
    return tuple(np.split(a, np.cumsum(sizes)[:-1], dim))


def _split(a: Any, size: Any, dim: int = 0) -> Any:
    if not isinstance(size, int):
        return _split_sizes(a, size, dim)
    length = a.shape[dim]
    return tuple(np.split(a, list(range(size, length, size)), dim)) if length else (a,)


def _chunk(a: Any, chunks: int, dim: int = 0) -> Any:
    size = -(-a.shape[dim] // chunks)
    return _split(a, size, dim) if size else (a,) * chunks


def _tensor_split(a: Any, given: Any, dim: int = 0) -> Any:
    return tuple(np.array_split(a, given, dim))


_REFUSED = (RuntimeError, "at least a 1-dimensional", ())


RECORDS = [
    OpRecord(
        "view",
        calls(
            ((4, 6), (4, 3, 2)),
            ((3,), (3, 1)),
            ((), (1, 1)),
            ((0, 3), (0, 3, 1)),
            ((2, 4), (1, -1, 4)),
        ),
        lambda a, shape: a.reshape(shape),
        errors=wrong(
            (RuntimeError, "invalid for input of size 6", (2, 3), (5,)),
            (RuntimeError, "only one dimension can be inferred", (2, 3), (-1, -1)),
        ),
        torch="Tensor.view",
    ),
    OpRecord(
        "reshape",
        calls(
            ((4, 6), 3, 8), ((4, 6), (-1,)), ((), (1,)), ((0, 3), (3, 0)), ((2, 3), {"shape": (6,)})
        ),
        _sizes(np.reshape),
        errors=wrong(
            (RuntimeError, "invalid for input of size 6", (2, 3), (4,)),
            (RuntimeError, "ambiguous", (0, 2), (-1, 0)),
        ),
        torch="Tensor.reshape",
    ),
    OpRecord(
        "reshape_as",
        calls(([(4, 6), (3, 8)],), ([(2,), (2, 1)],), ([(0, 3), (2, 0)],), ([(1,), ()],)),
        lambda a, b: a.reshape(b.shape),
        torch="Tensor.reshape_as",
    ),
    OpRecord(
        "view_as",
        calls(([(3,), (3, 1)],), ([(), (1,)],), ([(0, 3), (2, 0)],)),
        lambda a, b: a.reshape(b.shape),
        torch="Tensor.view_as",
    ),
    OpRecord(
        "flatten",
        calls(((2, 3, 4),), ((2, 3, 4), 1), ((2, 3, 4), 0, -2), ((),), ((0, 2),), ((3,), 0, 0)),
        _flatten,
        errors=wrong(
            (RuntimeError, "start_dim cannot come after", (2, 3), 1, 0),
            (IndexError, "out of range", (2,), 2),
        ),
    ),
    OpRecord("ravel", calls(((2, 3),), ((2, 1),), ((),), ((0, 2),)), np.ravel),
    OpRecord(
        "unflatten",
        calls(((2, 12), 1, (3, -1)), ((6,), -1, (2, 3)), ((2, 0), 1, (0, 4))),
        _unflatten,
        errors=wrong(
            (RuntimeError, "don't multiply up", (2, 6), 1, (4, 2)),
            (RuntimeError, "non-empty", (2,), 0, ()),
        ),
    ),
    OpRecord(
        "squeeze",
        calls(
            ((1, 3, 1),),
            ((1, 3, 1), 0),
            ((1, 3, 1), 1),
            ((1, 3, 1), (0, -1)),
            ((),),
            ((), 0),
            ((2, 3),),
            ((0, 1),),
        ),
        _squeeze,
        errors=wrong((IndexError, "out of range", (2, 1), 2)),
    ),
    OpRecord(
        "unsqueeze",
        calls(((2, 3), 0), ((2, 3), -1), ((), 0), ((0, 2), 1)),
        np.expand_dims,
        errors=wrong((IndexError, "out of range", (2, 3), 3)),
    ),
    OpRecord("atleast_1d", calls(((),), ((0,),), ([(), (2, 3)],)), _each(np.atleast_1d)),
    OpRecord("atleast_2d", calls(((),), ((2,),), ((0,),), ([(), (2, 3)],)), _each(np.atleast_2d)),
    OpRecord(
        "atleast_3d",
        calls(((),), ((2,),), ((2, 3),), ((0,),), ([(), (2, 3, 4)],)),
        _each(np.atleast_3d),
    ),
    OpRecord(
        "permute",
        calls(
            ((2, 3, 4), 2, 0, 1),
            ((2, 3), (-1, 0)),
            ((), ()),
            ((0, 2), (1, 0)),
            ((2, 3), {"dims": (1, 0)}),
        ),
        _sizes(np.transpose),
        errors=wrong(
            (RuntimeError, r"len\(dims\) = 2", (2, 3, 4), (0, 1)),
            (RuntimeError, "duplicate", (2, 3), (0, 0)),
        ),
        torch="Tensor.permute",
    ),
    OpRecord(
        "transpose",
        calls(((2, 3, 4), 0, -1), ((2, 3), 1, 1), ((), 0, -1), ((3, 3), 0, 1), ((0, 3), 0, 1)),
        lambda a, i, j: np.swapaxes(a, i, j) if a.ndim else a,
        errors=wrong((IndexError, "out of range", (2, 3), 0, 2)),
    ),
    OpRecord(
        "t",
        calls(((2, 3),), ((3,),), ((),), ((3, 3),), ((0, 2),)),
        np.transpose,
        errors=wrong((RuntimeError, "3D", (1, 2, 3))),
    ),
    OpRecord(
        "movedim",
        calls(
            ((2, 3, 4), 0, -1),
            ((2, 3, 4), (0, 1), (1, 2)),
            ((), 0, 0),
            ((2, 3), (), ()),
            ((0, 3), 0, 1),
        ),
        lambda a, i, j: np.moveaxis(a, i, j) if a.ndim else a,
        errors=wrong(
            (RuntimeError, "same number", (2, 3), (0, 1), (0,)),
            (RuntimeError, "repeated dim", (2, 3), (0, 0), (0, 1)),
        ),
    ),
    OpRecord(
        "adjoint",
        calls(((2, 3),), ((2, 3, 4),), ((0, 3),)),
        _adjoint,
        errors=wrong((RuntimeError, "only supported on matrices", (2,))),
    ),
    OpRecord(
        "matrix_H",
        calls(((2, 3),), ((),), ((0, 2),)),
        lambda a: np.conj(a).T,
        errors=wrong((RuntimeError, "only supported on matrices", (2, 3, 4))),
        torch="",
    ),
    OpRecord(
        "expand",
        calls(
            ((3, 1), 3, 4),
            ((3, 1), (2, -1, 4)),
            ((), (2, 2)),
            ((1, 0), (3, 0)),
            ((2,), {"size": (3, 2)}),
        ),
        _sizes(_expand),
        errors=wrong(
            (RuntimeError, "must match the existing size", (2,), (3,)),
            (RuntimeError, "number of sizes", (2, 3), (3,)),
        ),
        torch="Tensor.expand",
    ),
    OpRecord(
        "expand_as",
        calls(([(3, 1), (2, 3, 4)],), ([(), (2,)],), ([(1, 3), (0, 3)],)),
        lambda a, b: np.broadcast_to(a, b.shape),
        torch="Tensor.expand_as",
    ),
    OpRecord(
        "broadcast_to",
        calls(((3, 1), (3, 4)), ((), (2,)), ((1, 3), (0, 3))),
        np.broadcast_to,
        errors=wrong((RuntimeError, "must match", (2,), (3,))),
    ),
    OpRecord(
        "broadcast_tensors",
        calls(([(3, 1), (4,)],), ([(), (2, 3), (1, 3)],), ([(0, 1), (3,)],)),
        lambda *a: tuple(np.broadcast_arrays(*a)),
    ),
    OpRecord(
        "sum_to_size",
        calls(
            ((2, 3), 1, 3),
            ((4, 2, 3), 2, 1),
            ((2, 3), 2, 3),
            ((2, 3), 1),
            ((0, 3), 1, 3),
            ((2, 0), 2, 0),
        ),
        _sum_to_size,
        errors=wrong((RuntimeError, "not expandable", (2, 3), 2, 2)),
        torch="Tensor.sum_to_size",
    ),
    OpRecord(
        "unbind",
        calls(((3, 2),), ((3, 2), -1), ((2, 0),), ((3,),)),
        _unbind,
        errors=wrong((IndexError, "no dimensions", ()), (IndexError, "out of range", (2,), 1)),
    ),
    OpRecord(
        "split_with_sizes",
        calls(((5, 2), [2, 3]), ((2, 4), [0, 1, 3], -1), ((0, 2), [0])),
        _split_sizes,
        errors=wrong((RuntimeError, "sum exactly to 5", (5,), [2, 2]), (*_REFUSED, [1])),
    ),
    OpRecord(
        "split",
        calls(((5, 2), 2), ((5, 2), [4, 1]), ((2, 6), 3, 1), ((0, 2), 2), ((3,), 5)),
        _split,
        errors=wrong(
            (RuntimeError, "non-negative", (3,), -1),
            (RuntimeError, "can only be 0", (3,), 0),
            (*_REFUSED, 1),
        ),
    ),
    OpRecord(
        "chunk",
        calls(((5, 2), 2), ((2, 4), 3, -1), ((3,), 7), ((0, 2), 2)),
        _chunk,
        errors=wrong((RuntimeError, "greater than 0", (3,), 0), (*_REFUSED, 1)),
    ),
    OpRecord(
        "tensor_split",
        calls(((5, 2), 3), ((5, 2), (1, 3)), ((2, 5), (3, 1, 9), 1), ((3,), 5), ((4,), (-1,))),
        _tensor_split,
        errors=wrong((RuntimeError, "larger than 0", (3,), 0)),
    ),
    OpRecord(
        "hsplit",
        calls(((4,), 2), ((2, 4), 2), ((2, 5), (1, 3)), ((0, 4), 2)),
        lambda a, n: tuple(np.hsplit(a, n)),
        errors=wrong((RuntimeError, "not divisible", (2, 3), 2)),
    ),
    OpRecord(
        "vsplit",
        calls(((4, 2), 2), ((5, 2), (1, 3)), ((4, 0), 2)),
        lambda a, n: tuple(np.vsplit(a, n)),
        errors=wrong((RuntimeError, "at least 2 dimension", (4,), 2)),
    ),
    OpRecord(
        "dsplit",
        calls(((1, 2, 4), 2), ((1, 2, 5), (1, 3)), ((0, 2, 4), 2)),
        lambda a, n: tuple(np.dsplit(a, n)),
        errors=wrong((RuntimeError, "at least 3 dimension", (4, 2), 2)),
    ),
]
