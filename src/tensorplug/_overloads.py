"""Torch's spelling of ops, as ``__torch_dispatch__`` gets them: ``tp.ops.aten.add.Tensor``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.out_variants import copy_out, refuse_tracked_out
from tensorplug.core.dispatch.torch_dispatch import decomposed
from tensorplug.core.tensor.predicates import is_tensor

#: Ops that ATen has in smaller ops only: what sees calls of ops gets those.
_COMPOSED = frozenset(
    [
        "adjoint",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "bilinear",
        "broadcast_to",
        "chain_matmul",
        "chunk",
        "column_stack",
        "conj",
        "contiguous",
        "conv1d",
        "conv2d",
        "conv3d",
        "diag",
        "dsplit",
        "dstack",
        "einsum",
        "expand_as",
        "flatten",
        "hsplit",
        "hstack",
        "imag",
        "inner",
        "kron",
        "linalg_multi_dot",
        "linear_activation",
        "mT",
        "matrix_H",
        "meshgrid",
        "movedim",
        "multi_head_attention_forward",
        "narrow",
        "outer",
        "positive",
        "ravel",
        "real",
        "reshape",
        "reshape_as",
        "sum_to_size",
        "tensordot",
        "tile",
        "unflatten",
        "view_as",
        "vsplit",
        "vstack",
    ]
)

_BY_SECOND = frozenset(
    [
        "bitwise_and",
        "bitwise_left_shift",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
        "copysign",
        "eq",
        "fill",
        "fmod",
        "ge",
        "gt",
        "le",
        "lt",
        "ne",
        "remainder",
        "rsub",
    ]
)
_OVERLOADS = {
    **dict.fromkeys(("add", "index", "ldexp", "mul", "split", "sub", "bucketize", "searchsorted"), "Tensor"),
    **dict.fromkeys(("select", "transpose", "unbind", "softmax", "log_softmax", "movedim"), "int"),
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), "input"),
    **dict.fromkeys(("std", "std_mean", "var", "var_mean"), "correction"),
    "empty": "memory_format", "flatten": "using_ints", "frexp": "Tensor", "scatter_reduce": "two",
}  # fmt: skip
#: The same of methods that write in place, where ATen has other ones.
_WRITING = {
    "bernoulli": "float", "ldexp": "default", "normal": "default", "transpose": "default",
}  # fmt: skip
_WRITTEN_BY_SECOND = frozenset(["float_power", "floor_divide", "pow"])
#: Ops of which ATen takes whole numbers as a list.
_OF_LISTS = frozenset(
    {"amax", "amin", "expand", "flip", "mean", "permute", "repeat", "sum", "tile", "view"}
)
#: Reductions whose form with a dimension has another name.
_OF_DIM = {
    "sum": "dim_IntList",
    **dict.fromkeys(("all", "any", "max", "mean", "median", "min"), "dim"),
    "prod": "dim_int",
}


def _aten(name: str, overload: str) -> Any:
    return getattr(getattr(sys.modules["tensorplug"].ops.aten, name), overload)


def composed(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """Return what makes a call of smaller ops, where ATen has none but those; else None."""
    make = _parts(op, args)
    if "out" not in kwargs:
        return make
    if make is None and op.name.startswith("conv"):
        make = op.call  # other arguments are ATen's, without any that is written
    return None if make is None else functools.partial(_written, op, make)


def _parts(op: Op, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    own = _OWN.get(op.name)
    if own is not None:
        return own if op.name != "basic_index" or _several(args) else None
    if op.name in _COMPOSED and op.kind == "composite":
        return lambda *args, **kwargs: decomposed(op, args, kwargs)
    return None


def _written(op: Op, make: Callable[..., Any], *args: Any, out: Any, **kwargs: Any) -> Any:
    """Write what a call comes to into a tensor, if there is one."""
    if out is None:
        return make(*args, **kwargs)
    refuse_tracked_out(op, args, kwargs, (out,))
    return copy_out(op, args, make(*args, **kwargs), out)


def spelled(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return ATen's op, or ours where it has none, and the arguments."""
    name = op.name
    if name == "cast":
        return _aten("_to_copy", "default"), args[:1], {"dtype": args[1]}
    if name == "basic_index":
        return _one_index(*args)
    if name == "convolution":
        none = (0,) * (args[1].dim() - 2)
        return _aten(name, "default"), (*args[:6], False, none, args[6]), kwargs
    if name.startswith("conv_transpose"):
        input, weight, bias, stride, padding, output_padding, groups, dilation = op.bind(
            args, kwargs
        )
        dims = weight.dim() - 2
        steps, pads, out, holes = [
            (value,) * dims if isinstance(value, int) else tuple(value)
            for value in (stride, padding, output_padding, dilation)
        ]
        return (
            _aten("convolution", "default"),
            (input, weight, bias, steps, pads, holes, True, out, groups),
            {},
        )
    base = name if op.inplace_of is None else name.removesuffix("_")
    if name in _OF_LISTS and len(args) > 1 and isinstance(args[1], int):
        end = 2 if name in _OF_DIM or name in ("amax", "amin") else len(args)
        args = (args[0], list(args[1:end]), *args[end:])
    try:
        packet = getattr(sys.modules["tensorplug"].ops.aten, name)
    except AttributeError:
        from tensorplug._ops import OpOverloadPacket

        packet = OpOverloadPacket("tensorplug", name, op.call)
    return getattr(packet, _overload(op, base, args, kwargs)), args, kwargs


#: Products for which ATen has ops, and that are made of one of ours, which ATen has not.
_PRODUCTS = frozenset(("bmm", "dot", "mm", "mv"))


def differentiated_as(op: Op) -> Op:
    """Return the op whose derivative that of an op is, of the same arguments."""
    return op_registry.get_op("matmul") if op.name in _PRODUCTS else op


def named(name: str, args: tuple[Any, ...]) -> Any:
    """Return ATen's op of a method that is no op here, and the arguments."""
    return _aten(name, "default"), args, {}


def _overload(op: Op, name: str, args: Any, kwargs: dict[str, Any]) -> str:
    """Return which of its forms ATen takes for a call."""
    writes = op.inplace_of is not None
    names = (op.inplace_of or op).names
    given = dict(zip(names, args, strict=False)) | kwargs
    first, second, third = [given.get(key) for key in (*names, "", "", "")[:3]]
    if writes and name in _WRITING:
        return _WRITING[name]
    if name in _OVERLOADS:
        return _OVERLOADS[name]
    if name in _BY_SECOND or (writes and name in _WRITTEN_BY_SECOND):
        return "Tensor" if is_tensor(second) else "Scalar"
    if name == "div":
        return "Tensor_mode" if given.get("rounding_mode") else "Tensor"
    if name in ("pow", "float_power", "isin"):
        kinds = ["Tensor" if is_tensor(value) else "Scalar" for value in (first, second)]
        return "Scalar" if kinds[0] == "Scalar" and name != "isin" else "_".join(kinds)
    if name == "xlogy":
        if not is_tensor(first):
            return "Scalar_Self"
        return "Tensor" if is_tensor(second) else "Scalar_Other"
    if name in ("masked_fill", "lerp"):
        return "Tensor" if is_tensor(third) else "Scalar"
    if name == "index_fill":
        return "int_Tensor" if is_tensor(given.get("value")) else "int_Scalar"
    if name == "scatter":
        source = "src" if is_tensor(given.get("src")) else "value"
        reduced = given.get("reduce") is not None
        return source if not reduced else "reduce" if source == "src" else "value_reduce"
    if name == "where" and third is not None:
        kinds = [
            "" if is_tensor(value) else kind for value, kind in ((second, "Self"), (third, "Other"))
        ]
        return "Scalar" if all(kinds) else f"Scalar{''.join(kinds)}" if any(kinds) else "self"
    if name == "repeat_interleave":
        return "Tensor" if second is None else "self_Tensor" if is_tensor(second) else "self_int"
    if name == "tensor_split":
        return "sections" if isinstance(second, int) else "indices"
    if name in ("max", "min") and (is_tensor(second) or "other" in given):
        return "other"
    if name == "histogram":
        return "bin_ct" if isinstance(second, int) else "bins_tensor"
    if name == "ctc_loss":
        return "Tensor" if is_tensor(third) else "IntList"
    if name == "normal":
        return "_".join(["Tensor" if is_tensor(value) else "float" for value in (first, second)])
    if name.endswith("trapezoid"):
        return "dx" if second is None else "x"
    if name == "norm":
        return "Scalar" if given.get("dim") is None else "ScalarOpt_dim"
    if name in _OF_DIM and second is not None:
        return _OF_DIM[name]
    return "default"


# --- ops that ATen writes in others than we do ---


def _matmul(input: Any, other: Any) -> Any:
    """Multiply by ATen's products of vectors, of matrices and of batches."""
    call = op_registry.get_op
    dims = input.dim(), other.dim()
    if dims == (1, 1):
        return call("dot").call(input, other)
    if dims == (2, 1):
        return call("mv").call(input, other)
    if dims == (1, 2):
        return call("mm").call(input.unsqueeze(0), other).squeeze(0)
    if dims == (2, 2):
        return call("mm").call(input, other)
    if dims[1] == 1:
        flat = call("mv").call(input.reshape(-1, input.shape[-1]), other)
        return flat.view(input.shape[:-1])
    if dims[1] == 2:
        flat = call("mm").call(input.reshape(-1, input.shape[-1]), other)
        return flat.view((*input.shape[:-1], other.shape[1]))
    if dims[0] == 1:
        return _matmul(other.mT, input)
    if dims[0] == 2 and input.requires_grad:
        return _matmul(other.mT, input.t()).mT
    batch = sys.modules["tensorplug"].broadcast_shapes(input.shape[:-2], other.shape[:-2])
    left, right = [
        value.expand((*batch, *value.shape[-2:])).reshape(-1, *value.shape[-2:])
        for value in (input, other)
    ]
    return call("bmm").call(left, right).view((*batch, input.shape[-2], other.shape[-1]))


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Multiply and add by ATen's ``addmm`` where it does."""
    if bias is None or input.dim() == 1:
        product = _matmul(input, weight.t())
        return product if bias is None else product + bias
    flat = input.reshape(-1, input.shape[-1]) if input.dim() > 2 else input
    result = op_registry.get_op("addmm").call(bias, flat, weight.t())
    return result.view((*input.shape[:-1], weight.shape[0])) if input.dim() > 2 else result


def _several(args: tuple[Any, ...]) -> bool:
    given: Any = args[1]
    key: tuple[Any, ...] = given if isinstance(given, tuple) else (given,)
    return sum(item is not Ellipsis and item != slice(None) for item in key) > 1


def _indices(key: Any, ndim: int) -> list[Any]:
    items = list(key) if isinstance(key, tuple) else [key]
    taken = sum(item is not None and item is not Ellipsis for item in items)
    for position, item in enumerate(items):
        if item is Ellipsis:
            items[position : position + 1] = [slice(None)] * (ndim - taken)
            break
    return items


def _one_index(input: Any, key: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return ATen's op of an index of which one part is more than ``:``."""
    for dim, item in enumerate(_indices(key, input.dim())):
        if item is None:
            return _aten("unsqueeze", "default"), (input, dim), {}
        if isinstance(item, slice):
            if item != slice(None):
                stop = sys.maxsize if item.stop is None else item.stop
                steps: tuple[Any, ...] = () if item.step in (None, 1) else (item.step,)
                return _aten("slice", "Tensor"), (input, dim, item.start or 0, stop, *steps), {}
        else:
            return _aten("select", "int"), (input, dim, item), {}
    return _aten("alias", "default"), (input,), {}


def _basic_index(input: Any, key: Any) -> Any:
    """Take one part of an index after another."""
    dim = 0
    for item in _indices(key, input.dim()):
        if item is None or item != slice(None):
            input = input[(*[slice(None)] * dim, item)]
        dim += item is None or isinstance(item, slice)
    return input


_OWN: dict[str, Callable[..., Any]] = {
    "basic_index": _basic_index, "linear": _linear, "matmul": _matmul
}  # fmt: skip
