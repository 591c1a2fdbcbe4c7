"""What functions that make tensors make of a sparse layout, or of a sparse tensor.

Where nothing is stored all elements are zero, so zeros and memory of any content are to be had in every
layout. All others would store each element: they refuse a sparse layout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorplug.core import ops
from tensorplug.core.device.dtypes import int64, scalar_type
from tensorplug.core.dispatch.op import Op
from tensorplug.core.ops.creation import windows_namespace
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.layout import preserve_format, strided

from .arithmetic import nothing_stored
from .compressed import CompressedTensor
from .coordinates import CooTensor
from .layouts import not_of, sparse_coo, title
from .tensors import SparseTensor


def _ops(*makers: Any) -> tuple[Op, ...]:
    return tuple([maker.op for maker in makers])


_LIKE = _ops(ops.empty_like, ops.zeros_like)
_NOTHING_STORED = (*_LIKE, *_ops(ops.empty, ops.zeros, ops.new_empty, ops.new_zeros))
_WINDOWS = _ops(*[getattr(windows_namespace, name) for name in windows_namespace.__all__])
#: Those that torch has of matrices stored row by row or column by column: they keep the places.
_AT_THE_PLACES = _ops(ops.empty_like, ops.ones_like, ops.full_like, ops.randn_like)
_OF_A_TENSOR = (
    *_LIKE,
    *_ops(ops.ones_like, ops.full_like, ops.rand_like, ops.randn_like, ops.randint_like),
    *_ops(ops.new_empty, ops.new_zeros, ops.new_ones, ops.new_full),
    *_ops(ops.new_tensor, ops.new_empty_strided),
)


def made_in(layout: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what an op that makes tensors makes in a layout.

    Raises
    ------
    NotImplementedError, ValueError
        If its elements would all be stored, or there are no tensors of this shape in the layout.
    RuntimeError
        If `out` is of another layout.
    """
    out = kwargs.get("out")
    if out is not None and out.layout is not layout:
        raise RuntimeError(
            f"{op.name}(): layout {layout} does not match layout of out parameter ({out.layout})"
        )
    if op in _WINDOWS:
        op.function(*args, **kwargs)  # refuses the layout itself, with a ValueError as torch
    if layout is not strided and op not in _NOTHING_STORED:
        raise NotImplementedError(
            f"{op.name}(): is not implemented for sparse layout {layout}; make a dense tensor, and "
            "convert it with .to_sparse()"
        )
    options = {name: value for name, value in kwargs.items() if name != "layout"}
    if layout is strided:
        return op.call(*_dense(args), **options)
    requires_grad = options.pop("requires_grad", False)
    format = options.pop("memory_format", None)
    if format is not None and (format is not preserve_format or op is _LIKE[0]):
        raise RuntimeError(
            f"{op.name}(): memory format option is only supported by strided tensors"
        )
    options.pop("pin_memory", None)
    device = options.pop("device", None)
    if device is None:
        example: Any = args[0] if args and isinstance(args[0], TensorBase) else ops.empty(0)
        device = example.device
    model = op.call(*_dense(args), **options, device="meta")
    if op in _LIKE and isinstance(args[0], SparseTensor) and layout is args[0].layout:
        made = nothing_stored(args[0], model.dtype, device)  # of as many dense dimensions
    else:
        example = args[0] if op in _LIKE else None
        made = _empty(layout, model.shape, model.dtype, device, op.name, example)
    return made.requires_grad_() if requires_grad else made


def made_into(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Have a sparse `out` become what an op makes: a tensor in which nothing is stored."""
    out, dtype = kwargs["out"], kwargs.get("dtype")
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(
            f"{op.name}(): dtype {scalar_type(dtype)} does not match dtype of out parameter "
            f"({scalar_type(out.dtype)})"
        )
    options = {"device": out.device, **kwargs, "dtype": out.dtype, "out": None}
    return out._take(made_in(out.layout, op, args, options))


def _empty(
    layout: Any, shape: Any, dtype: Any, device: Any, name: str, example: Any = None
) -> SparseTensor:
    """Return a tensor of a sparse layout without elements; of as many dense dimensions as an example has."""
    given = isinstance(example, SparseTensor)
    count = len(shape) - (example.dense_dim() if given else 0)
    dense = tuple(shape[count:])
    if layout is sparse_coo:
        values = ops.empty((0, *dense), dtype=dtype, device=device)
        where = ops.empty((count, 0), dtype=int64, device=device)
        return CooTensor.of(where, values, tuple(shape), True)
    if count < 2:
        raise RuntimeError(
            f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size "
            f"{list(shape)}"
        )
    sizes, block = shape[count - 2 : count], (1, 1)
    if layout.blocked:
        if not isinstance(example, CompressedTensor) or not example._layout.blocked:
            raise not_of(f"{name}_sparse_compressed", "sparse compressed (non-block)", layout)
        block = example._blocksize
        dense = (*block, *dense)
    leading = tuple(shape[: count - 2])
    number = 0 if layout.by_rows else 1
    starts = (*leading, sizes[number] // block[number] + 1)
    return CompressedTensor.of(
        layout,
        ops.zeros(starts, dtype=int64, device=device),
        ops.empty((*leading, 0), dtype=int64, device=device),
        ops.empty((*leading, 0, *dense), dtype=dtype, device=device),
        tuple(shape),
    )


def _dense(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call with a dense tensor of the shape in place of a sparse one."""
    if not args or not isinstance(args[0], SparseTensor):
        return args
    first = args[0]
    return (ops.empty(first.shape, dtype=first.dtype, device=first.device), *args[1:])


def _like(op: Op, input: Any, *args: Any, layout: Any = None, **kwargs: Any) -> Any:
    """Return what an op makes after the example of a sparse tensor, by default in its layout."""
    kept = op in _AT_THE_PLACES and isinstance(input, CompressedTensor)
    if kept and layout in (None, input.layout) and kwargs.get("memory_format") is None:
        values = op.call(input._stored.detach(), *args, **kwargs)
        starts, columns = [part.to(values.device, copy=True) for part in input._parts()[:-1]]
        return input._with((starts, columns, values))
    if (
        op is _LIKE[0]
        and isinstance(input, CompressedTensor)
        and layout not in (None, input.layout)
    ):
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {title(input.layout)} but "
            f"you requested {title(layout)})"
        )
    return made_in(layout or input.layout, op, (input, *args), kwargs)


#: Ops that make a tensor after the example of a sparse one, by their names.
TABLE: dict[str, Callable[..., Any]] = {op.name: partial(_like, op) for op in _OF_A_TENSOR}
