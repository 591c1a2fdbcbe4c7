"""Ops of networks: products, convolutions, pooling, normalization, resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.graph import Node, Value

from ..writing import Inexpressible, Writer
from .table import LOWERINGS, lowering

__all__: list[str] = []


def _floats(*values: Any) -> None:
    if any(isinstance(v, Value) and not v.dtype.is_floating_point for v in values):
        raise Inexpressible("of integers")


def _several(value: Any, count: int) -> list[int]:
    """Return one number for each dimension."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    return items * count if len(items) == 1 else items


@lowering("matmul")
def _matmul(w: Writer, node: Node, input: Value, other: Value, **rest: Any) -> str:
    if node.output.dtype is dtypes.bool_:
        raise Inexpressible("products of truth values")
    kind = node.output.dtype
    return w.add("MatMul", w.value(input, kind), w.value(other, kind))


@lowering("linear")
def _linear(
    w: Writer, node: Node, input: Value, weight: Value, bias: Value | None = None, **rest: Any
) -> str:
    kind = node.output.dtype
    if len(weight.shape) != 2:
        raise Inexpressible("a weight that is no matrix")
    if len(input.shape) == 2 and bias is not None and len(bias.shape) == 1:
        names = (w.value(value, kind) for value in (input, weight, bias))
        return w.add("Gemm", *names, transB=1)
    product = w.add(
        "MatMul", w.value(input, kind), w.add("Transpose", w.value(weight, kind), perm=[1, 0])
    )
    return product if bias is None else w.add("Add", product, w.value(bias, kind))


@lowering("einsum")
def _einsum(w: Writer, node: Node, args: Sequence[Any], **rest: Any) -> str:
    equation, *tensors = args
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = list(tensors[0])
    if not isinstance(equation, str) or not all(isinstance(t, Value) for t in tensors):
        raise Inexpressible("an equation that is not text")
    if "..." in equation and len({len(t.shape) for t in tensors}) > 1:
        raise Inexpressible("an ellipsis that stands for several numbers of dimensions")
    return w.add("Einsum", *[w.value(t, node.output.dtype) for t in tensors], equation=equation)


@lowering("linalg_det")
def _det(w: Writer, node: Node, A: Value, **rest: Any) -> str:
    return w.add("Det", w.value(A))


def _convolution(count: int, transposed: bool) -> Callable[..., str]:
    def lower(
        w: Writer,
        node: Node,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        output_padding: Any = 0,
        **rest: Any,
    ) -> str:
        _floats(input, weight)
        x = w.value(input)
        single = len(input.shape) == count + 1
        if single:
            x = w.add("Unsqueeze", x, w.ints([0]))
        options: dict[str, Any] = {
            "strides": _several(stride, count),
            "dilations": _several(dilation, count),
            "group": groups,
            "kernel_shape": list(weight.shape[2:]),
        }
        if padding == "same":
            options["auto_pad"] = "SAME_UPPER"
            reach = [
                (k - 1) * d for k, d in zip(weight.shape[2:], options["dilations"], strict=True)
            ]
            del options["auto_pad"]
            options["pads"] = [r // 2 for r in reach] + [r - r // 2 for r in reach]
        elif padding != "valid":
            options["pads"] = _several(padding, count) * 2
        if transposed:
            extra = _several(output_padding, count)
            if any(e >= s for e, s in zip(extra, options["strides"], strict=True) if e):
                raise Inexpressible(
                    "output_padding of the stride or more, which onnxruntime refuses"
                )
            options["output_padding"] = extra
        name = "ConvTranspose" if transposed else "Conv"
        made = w.add(name, x, w.value(weight), w.value(bias), **options)
        return w.add("Squeeze", made, w.ints([0])) if single else made

    return lower


for _count in (1, 2, 3):
    LOWERINGS[f"conv{_count}d"] = _convolution(_count, False)
    LOWERINGS[f"conv_transpose{_count}d"] = _convolution(_count, True)


def _pooling(count: int, name: str) -> Callable[..., str]:
    def lower(
        w: Writer,
        node: Node,
        input: Value,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        return_indices: bool = False,
        **rest: Any,
    ) -> str:
        _floats(input)
        if return_indices or divisor_override is not None:
            raise Inexpressible("indices of pooling, or a divisor of its own")
        x = w.value(input)
        single = len(input.shape) == count + 1
        if single:
            x = w.add("Unsqueeze", x, w.ints([0]))
        kernel = _several(kernel_size, count)
        steps = kernel if stride is None or stride == [] else _several(stride, count)
        options: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": steps,
            "pads": _several(padding, count) * 2,
            "ceil_mode": int(ceil_mode),
        }
        if name == "MaxPool":
            options["dilations"] = _several(dilation, count)
        else:
            if ceil_mode:
                raise Inexpressible("averages of windows beyond the border")
            options["count_include_pad"] = int(count_include_pad)
        made = w.add(name, x, **options)
        return w.add("Squeeze", made, w.ints([0])) if single else made

    return lower


for _count in (1, 2, 3):
    LOWERINGS[f"max_pool{_count}d"] = _pooling(_count, "MaxPool")
    LOWERINGS[f"avg_pool{_count}d"] = _pooling(_count, "AveragePool")


def _global(count: int, name: str) -> Callable[..., str]:
    def lower(w: Writer, node: Node, input: Value, output_size: Any, **rest: Any) -> str:
        if len(input.shape) != count + 2 or set(_several(output_size, count)) != {1}:
            raise Inexpressible("pooling to more than one element")
        _floats(input)
        return w.add(name, w.value(input))

    return lower


for _count in (1, 2, 3):
    LOWERINGS[f"adaptive_avg_pool{_count}d"] = _global(_count, "GlobalAveragePool")
    LOWERINGS[f"adaptive_max_pool{_count}d"] = _global(_count, "GlobalMaxPool")


@lowering("batch_norm")
def _batch_norm(
    w: Writer,
    node: Node,
    input: Value,
    running_mean: Value | None,
    running_var: Value | None,
    weight: Value | None = None,
    bias: Value | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    **rest: Any,
) -> str:
    if training or running_mean is None or running_var is None:
        raise Inexpressible("statistics of the batch")
    _floats(input)
    kind = input.dtype
    size = [input.shape[1]]
    scale = w.value(weight, kind) if weight else w.constant([1.0] * size[0], kind, size)
    shift = w.value(bias, kind) if bias else w.constant([0.0] * size[0], kind, size)
    statistics = w.value(running_mean, kind), w.value(running_var, kind)
    return w.add("BatchNormalization", w.value(input), scale, shift, *statistics, epsilon=eps)


@lowering("layer_norm")
def _layer_norm(
    w: Writer,
    node: Node,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    **rest: Any,
) -> str:
    if weight is None:
        raise Inexpressible("without a weight")
    axis = -len(weight.shape)
    names = (w.value(input), w.value(weight), w.value(bias))
    return w.add("LayerNormalization", *names, axis=axis, epsilon=eps)


@lowering("softmax", "log_softmax")
def _softmax(w: Writer, node: Node, input: Value, dim: Any = None, **rest: Any) -> str:
    if dim is None or not input.shape:
        raise Inexpressible("without a dimension")
    name = "Softmax" if node.op.name == "softmax" else "LogSoftmax"
    return w.add(name, w.value(input, node.output.dtype), axis=dim)


@lowering("leaky_relu")
def _leaky_relu(
    w: Writer, node: Node, input: Value, negative_slope: float = 0.01, **rest: Any
) -> str:
    return w.add("LeakyRelu", w.value(input), alpha=float(negative_slope))


@lowering("linear_activation")
def _linear_activation(
    w: Writer,
    node: Node,
    input: Value,
    weight: Value,
    bias: Value | None,
    activation: str,
    **rest: Any,
) -> str:
    if activation != "relu":
        raise Inexpressible(activation)
    return w.add("Relu", _linear(w, node, input, weight, bias))
