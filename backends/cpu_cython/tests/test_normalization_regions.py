"""Batch norms with the activation after them in compiled training: as two kernels, bit for bit."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.normalization_batch", reason="cpu_cython is not built")
import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug_cpu_cython import normalization_regions
from tensorplug_cpu_cython.normalization_batch import batch_normalize

ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.7),
    "in place": lambda x: F.relu6(x, True),
}


def images(shape, dtype, last, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    order = (0, *range(2, x.ndim), 1)
    return (
        np.ascontiguousarray(x.transpose(order)).transpose(0, -1, *range(1, x.ndim - 1))
        if last
        else x
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "shape", [(4, 8, 5, 7), (3, 48, 4, 4), (2, 600, 2, 3), (40, 5, 3, 3), (9, 17), (2, 3, 900)]
)
def test_cut_off_as_by_a_clamp(shape, last, dtype):
    x = images(shape, dtype, last)
    x.flat[3], x.flat[-1] = np.nan, np.inf
    weight, bias = images(shape[1:2], dtype, False, 1), images(shape[1:2], dtype, False, 2)
    plain = batch_normalize([x, weight, bias], 1e-5)
    for low, high in ((0.0, np.inf), (-0.25, 0.5), (-np.inf, np.inf)):
        found = batch_normalize([x, weight, bias], 1e-5, low, high)
        np.testing.assert_array_equal(found[0], np.clip(plain[0], low, high))
        for a, b in zip(found[1:], plain[1:], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.fixture
def regions(monkeypatch):
    """How many regions were compiled, in a list."""
    made = []
    compile_ = normalization_regions.NormalizationFuser.compile

    def counting(self, *arguments):
        call = compile_(self, *arguments)
        made.append(call)
        return call

    monkeypatch.setattr(normalization_regions.NormalizationFuser, "compile", counting)
    return made


@pytest.mark.parametrize(
    ("name", "dtype", "convolved"),
    [*product(ACTIVATIONS, ("float32", "float64"), (False, True)), ("relu6", "bfloat16", False)],
)
def test_training_is_eagers_bit_for_bit(regions, name, dtype, convolved):
    tp.manual_seed(1)
    dtype = getattr(tp, dtype)
    norm = nn.BatchNorm2d(16).to(dtype)
    first, second = nn.Conv2d(3, 16, 1, bias=False).to(dtype), nn.Conv2d(16, 4, 1).to(dtype)
    parameters = [*norm.parameters(), *(first.parameters() if convolved else ())]
    shape = (4, 3 if convolved else 16, 6, 6)

    def program(x):
        y = ACTIVATIONS[name](norm(first(x) if convolved else x))
        return (second(y) if convolved else y).square().sum()

    compiled = tp.compile(program)
    for seed in range(4):
        x = tp.from_numpy(images(shape, "float32", False, seed)).to(dtype)
        found = []
        state = {key: value.clone() for key, value in norm.state_dict().items()}
        for run in (program, compiled):
            norm.load_state_dict(state)
            source = x.clone().requires_grad_()
            loss = run(source)
            gradients = tp.autograd.grad(loss, [source, *parameters])
            found.append(
                [loss.detach(), *gradients, norm.running_mean.clone(), norm.running_var.clone()]
            )
        for a, b in zip(*found, strict=True):
            if convolved and dtype is tp.float32:  # images channels last: sums in another order
                assert tp.allclose(a, b, rtol=1e-4, atol=1e-5 * float(a.abs().max()))
            else:
                assert tp.equal(a, b)
    assert bool(regions) == (dtype is not tp.bfloat16)


def test_images_that_others_take_stay():
    norm = nn.BatchNorm1d(8)

    @tp.compile
    def program(x):
        y = norm(x)
        return F.relu(y).sum() + (y * y).sum(), y

    for seed in range(3):
        x = tp.from_numpy(images((6, 8), "float32", False, seed)).requires_grad_()
        total, y = program(x)
        total.backward()
        expected = F.batch_norm(x, None, None, norm.weight, norm.bias, True)
        assert tp.equal(y, expected)
        assert tp.allclose(total, F.relu(expected).sum() + expected.square().sum())
