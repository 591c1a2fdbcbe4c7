"""The kernels give what the CPU gives in float64, from whatever layout, in grids of whatever size."""

import numpy as np
import pytest
from on_device import FLOATS, agree, integers, needs_device, randoms

import tensorplug as tp
from tensorplug_cuda_cupy import sources
from tensorplug_cuda_cupy.kernels import activation as activation_kernels, pooling
from tensorplug_cuda_cupy.kernels.normalization import batch_norm as batch_norm_kernels

pytestmark = needs_device
ops = tp.ops


def channels_last(x):
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if x.ndim > 2 else x


def with_gaps(x):
    return tp.stack([x, tp.full_like(x, float("nan"))], -1)[..., 0]


LAYOUTS = {
    "rows": tp.Tensor.contiguous,
    "channels_last": channels_last,
    "gaps": with_gaps,
    "few_blocks": tp.Tensor.contiguous,
}


@pytest.fixture(params=LAYOUTS)
def layout(request, monkeypatch):
    """Return how tensors lie; last, grids of few blocks whose threads loop, and indices of 64 bits."""
    if request.param == "few_blocks":
        monkeypatch.setattr(sources, "_MOST_BLOCKS", 1)
        monkeypatch.setattr(batch_norm_kernels, "_LEAST", 64)
        for module in (batch_norm_kernels, pooling):
            monkeypatch.setattr(module, "is_wide", lambda *shapes: 1)
    return LAYOUTS[request.param]


def of_classes(loss, shape, weighted, reduction):
    """Return a loss of classes and its gradient, one sample ignored, and their arguments."""

    def both(x, g, target, weight):
        backward = getattr(ops, f"{loss}_backward")
        return (
            getattr(ops, loss)(x, target, weight, reduction=reduction),
            backward(g, x, target, weight, -100, reduction),
        )

    def arguments():
        target = integers(0, shape[1], (shape[0], *shape[2:]), 1)
        target.reshape(-1)[1] = -100
        weight = randoms(shape[1], seed=2).abs() + 0.5 if weighted else None
        g = randoms(*(target.shape if reduction == "none" else ()), seed=3)
        return randoms(*shape) * 4, g, target, weight

    return both, arguments


# Size, kernel, stride, padding, dilation and ceil_mode: windows that leave out, overlap and stand over edges;
# the last one of so many elements that a block shares them.
WINDOWS = [
    ((9,), (3,), (2,), (1,), (2,), False),
    ((18, 17), (3, 2), (2, 1), (1, 0), (1, 2), True),
    ((4, 5, 4), (2, 2, 3), (1, 2, 1), (0, 1, 1), (1, 1, 1), True),
    ((17, 19), (17, 18), (1, 1), (1, 1), (1, 1), False),
]


def max_pool(size, *options):
    def both(x, g):
        values, places = ops.max_pool(x, *options)
        return values, places, ops.max_pool_backward(g, places, x.shape)

    x = randoms(4, 3, *size)
    return both, lambda: (x, randoms(*ops.max_pool(x, *options)[0].shape, seed=1))


def avg_pool(include, divisor, size, kernel, stride, padding, _, ceil_mode):
    options = (kernel, stride, padding, ceil_mode, include, divisor)

    def both(x, g):
        return ops.avg_pool(x, *options), ops.avg_pool_backward(g, size, *options)

    x = randoms(4, 3, *size)
    return both, lambda: (x, randoms(*ops.avg_pool(x, *options).shape, seed=1))


def adaptive(size, wanted):
    def both(x, g):
        return ops.adaptive_avg_pool(x, wanted), ops.adaptive_avg_pool_backward(g, x.shape)

    return both, lambda: (randoms(4, 33, *size), randoms(4, 33, *wanted, seed=1))


def batch_norm(*shape):
    def both(inputs, statistics, gradients):
        back = ops.native_batch_norm_backward(*gradients, *inputs[:2], *statistics)
        return *ops.native_batch_norm(*inputs, 1e-3), *back

    def arguments():
        inputs = [randoms(*shape) + 3, randoms(shape[1], seed=1), randoms(shape[1], seed=2)]
        statistics = ops.native_batch_norm(*inputs, 1e-3)[1:]
        return (
            inputs,
            statistics,
            [randoms(*s, seed=3) / 8 for s in (shape, shape[1:2], shape[1:2])],
        )

    return both, arguments


def batch_norm_inference(affine, *shape):
    def arguments():
        numbers = [randoms(shape[1], seed=n) for n in range(1, 5)]
        numbers[1] = numbers[1].abs() + 0.5
        affine_numbers = numbers[2:] if affine else [None, None]
        return randoms(*shape), *numbers[:2], *affine_numbers, 1e-3

    return ops.batch_norm_inference, arguments


def layer_norm(shape, last, name):
    def all_of_them(g, x, weight, bias):
        function, backward = getattr(ops, name), getattr(ops, f"{name}_backward")
        biased = (function(x, last, weight, bias, 1e-3),) if name == "layer_norm" else ()
        return (
            function(x, last, eps=1e-3),
            function(x, last, weight, eps=1e-3),
            *biased,
            *backward(g, x, last, weight, 1e-3),
            backward(g, x, last, None, 1e-3)[0],
        )

    def arguments():
        x, g = randoms(*shape) + 1, randoms(*shape, seed=1) / 8
        return g, x, randoms(*last, seed=2), randoms(*last, seed=3)

    return all_of_them, arguments


def group_norm(shape, groups):
    def all_of_them(g, x, weight, bias):
        return (
            ops.group_norm(x, groups, eps=1e-3),
            ops.group_norm(x, groups, weight, bias, 1e-3),
            *ops.group_norm_backward(g, x, groups, weight, 1e-3),
            ops.group_norm_backward(g, x, groups, None, 1e-3)[0],
        )

    def arguments():
        x, g = randoms(*shape) + 1, randoms(*shape, seed=1) / 8
        return g, x, randoms(shape[1], seed=2), randoms(shape[1], seed=3)

    return all_of_them, arguments


def soft(shape, dim):
    def all_four(x, g, result):
        gradients = [
            getattr(ops, f"{n}_backward")(g, result, dim) for n in ("softmax", "log_softmax")
        ]
        return x.softmax(dim), x.log_softmax(dim), *gradients

    def arguments():
        x = randoms(*shape)
        x.reshape(-1)[:1] = float("-inf")
        return x, randoms(*shape, seed=1), randoms(*shape, seed=2).softmax(dim)

    return all_four, arguments


def unit(shape, dim, eps):
    def both(x, g):
        return ops.normalize(x, 2, dim, eps), ops.normalize_backward(g, x, dim, eps)

    return both, lambda: (randoms(*shape), randoms(*shape, seed=1))


def lstm(n, h):
    def both(gates, own, cell, g_hidden, g_state, state):
        inputs = [gates, own, cell]
        found = ops.lstm_cell(inputs)
        return *found, *ops.lstm_cell_backward(g_hidden, g_state, inputs, state)

    def arguments():
        inputs = [randoms(n, 4 * h), randoms(n, 4 * h, seed=1), randoms(n, h, seed=2)]
        gradients = [randoms(n, h, seed=3), randoms(n, h, seed=4)]
        return *inputs, *gradients, ops.lstm_cell(inputs)[1]

    return both, arguments


def gru(n, h):
    def both(gates, own, hidden, g):
        inputs = [gates, own, hidden]
        return ops.gru_cell(inputs), *ops.gru_cell_backward(g, inputs)

    sizes = (3 * h, 3 * h, h, h)
    return both, lambda: tuple(randoms(n, size, seed=i) for i, size in enumerate(sizes))


def table(padding, by_frequency):
    def both(weight, indices, g):
        back = ops.embedding_dense_backward(g, indices, 4, padding, by_frequency)
        return ops.embedding(
            indices, weight, None if padding < 0 else padding, scale_grad_by_freq=by_frequency
        ), back

    indices = tp.tensor([[0, 2, 2], [3, 0, 2]])
    return both, lambda: (randoms(4, 150), indices, randoms(2, 3, 150, seed=1))


def native_dropout(p):
    def both(x):
        seed, offset = 1234567890123, (1 << 64) - 3  # the counter's lower half wraps around
        output, kept = ops.native_dropout(x, p, seed, offset)
        parts = [ops.native_dropout_backward(g, kept, p) for g in (x, x[:1].expand_as(x))]
        return output, kept, *parts

    return both, lambda: (randoms(7, 130),)


OPTIONS = {
    "elu": (0.7, 1.1, 2.0), "hardsigmoid": (), "hardswish": (), "hardtanh": (-1.0, 1.5), "leaky_relu": (0.1,),
    "logsigmoid": (), "mish": (), "softplus": (2.0, 3.0), "threshold": (0.5, 7.0),
}  # fmt: skip


def activation(name):
    def function(x):
        return getattr(ops, name)(x, *OPTIONS[name])

    def arguments():
        x = randoms(5, 100) * 4
        x[0, :3] = tp.tensor([np.nan, np.inf, -np.inf], dtype=tp.float64)
        return (x,)

    return function, arguments


def slope(name):
    op, options = getattr(ops, name), OPTIONS.get(name.removesuffix("_backward"), ())
    return lambda g, x: op(g, x, *options), lambda: (randoms(5, 100), randoms(5, 100, seed=1) * 4)


def gelu(approximate):
    def both(x, g):
        return ops.gelu(x, approximate), ops.gelu_backward(g, x, approximate), ops.silu(x)

    return both, lambda: (randoms(5, 100) * 3, randoms(5, 100, seed=1))


CASES = {
    **{name: activation(name) for name in activation_kernels.FUNCTIONS},
    **{name: slope(name) for name in (*activation_kernels.GRADIENTS, "silu_backward")},
    **{f"gelu_{way}": gelu(way) for way in ("none", "tanh")},
    **{f"softmax_{i}": soft(*case) for i, case in enumerate(
        [((3, 37), 1), ((5, 7, 3), 1), ((3000,), 0), ((2, 700), 1), ((300, 5), 0), ((0, 3), 1)])},
    **{f"batch_norm_{i}": batch_norm(*shape) for i, shape in enumerate(
        [(60, 9), (3, 5, 7), (4, 3, 16, 15), (2, 70, 3, 3)])},
    **{f"batch_norm_inference_{i}_{affine}": batch_norm_inference(affine, *shape) for affine in (False, True)
       for i, shape in enumerate([(6, 9), (4, 3, 16, 5), (2, 70, 3, 3)])},
    **{f"{name}_{i}": layer_norm(*case, name) for name in ("layer_norm", "rms_norm")
       for i, case in enumerate(
           [((5, 37), (37,)), ((200, 3, 4, 6), (4, 6)), ((900,), (900,)), ((0, 3), (3,))])},
    **{f"group_norm_{i}": group_norm(*case) for i, case in enumerate(
        [((3, 6, 5, 2), 3), ((3, 4, 7), 4), ((2, 6, 40), 1)])},
    **{f"normalize_{i}_{eps}": unit(*case, eps) for eps in (1e-12, 3.0) for i, case in enumerate(
        [((5, 370), 1), ((5, 37), 0), ((2, 3, 4), 1), ((9,), 0), ((0, 3), 1), ((3, 0), 1)])},
    **{f"max_pool_{i}": max_pool(*case) for i, case in enumerate(WINDOWS)},
    **{f"avg_pool_{i}_{include}_{divisor}": avg_pool(include, divisor, *case)
       for include, divisor in [(False, None), (True, None), (True, 5)] for i, case in enumerate(WINDOWS)},
    **{f"adaptive_{i}": adaptive(*case) for i, case in enumerate(
        [((7,), (3,)), ((3,), (7,)), ((5, 8), (2, 3)), ((4, 5, 6), (3, 5, 4)), ((1, 9), (1, 1))])},
    **{f"{loss}_{i}_{weighted}_{reduction}": of_classes(loss, shape, weighted, reduction)
       for loss in ("cross_entropy", "nll_loss")
       for i, shape in enumerate([(5, 4), (3, 900), (2, 4, 13, 13)])
       for weighted, reduction in [(False, "mean"), (True, "mean"), (True, "sum"), (True, "none")]},
    **{f"embedding_{padding}_{often}": table(padding, often) for padding in (-1, 2)
       for often in (False, True)},
    **{f"dropout_{p}": native_dropout(p) for p in (0.5, 0.1, 1.0, 0.0)},
    "lstm": lstm(5, 70),
    "gru": gru(4, 80),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", CASES)
def test_kernels(name, dtype, layout):
    op, arguments = CASES[name]
    agree(op, arguments(), dtype, layout, times=4, equal_nan=True)
