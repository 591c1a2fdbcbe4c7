"""Convolutions, products and attention against their definitions in float64."""

import os
import threading

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug_cpu_numpy.kernels import convolution as reference

onednn = pytest.importorskip(
    "tensorplug_cpu_cython.onednn", reason="oneDNN is not installed", exc_type=ImportError
)
from tensorplug_cpu_cython import convolution as chosen, cpu_features, matmul  # noqa: E402

CALM = settings(max_examples=60, deadline=None, derandomize=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def channels_last(array):
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


LAYOUTS = [
    np.ascontiguousarray,
    channels_last,
    lambda a: np.repeat(a, 2, -1)[..., ::2],
    lambda a: a[::-1],
]
layouts = st.sampled_from(LAYOUTS)


@st.composite
def convolutions(draw):
    dims = draw(st.integers(1, 3))

    def per_dimension(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims)))

    groups = draw(st.integers(1, 3))
    channels = draw(st.sampled_from([1, 2, 4, 8, 5]))
    outputs = draw(st.sampled_from([1, 2, 8, 3]))
    size, kernel = per_dimension(1, 9), per_dimension(1, 4)
    stride, padding, dilation = per_dimension(1, 3), per_dimension(0, 3), per_dimension(1, 2)
    where = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )
    assume(min(where) > 0)
    n = draw(st.integers(1, 3))
    input = draw(layouts)(numbers(n, groups * channels, *size))
    weight = draw(layouts)(numbers(groups * outputs, channels, *kernel, seed=1))
    gradient = draw(layouts)(numbers(n, groups * outputs, *where, seed=2))
    bias = draw(st.sampled_from([None, numbers(groups * outputs, seed=3)]))
    return input, weight, gradient, bias, (stride, padding, dilation, groups)


@pytest.mark.parametrize("kernels", [onednn, chosen], ids=["oneDNN's", "those in use"])
@CALM
@given(case=convolutions())
def test_convolutions(kernels, case):
    input, weight, gradient, bias, options = case
    x, w, g = (a.astype(np.float64) for a in (input, weight, gradient))
    b = None if bias is None else bias.astype(np.float64)
    result = kernels.convolution(input, weight, bias, *options)
    assert_allclose(result, reference.convolution(x, w, b, *options), rtol=1e-5, atol=2e-5)
    size, kernel = input.shape[2:], weight.shape[2:]
    assert_allclose(
        kernels.convolution_input(gradient, weight, size, *options),
        reference.convolution_input(g, w, size, *options), rtol=1e-5, atol=2e-5,
    )  # fmt: skip
    assert_allclose(
        kernels.convolution_weight(input, gradient, kernel, *options),
        reference.convolution_weight(x, g, kernel, *options), rtol=1e-5, atol=1e-4,
    )  # fmt: skip


def test_channels_last_stays():
    options = ((1, 1), (1, 1), (1, 1), 1)
    input, weight = channels_last(numbers(2, 16, 8, 8)), numbers(32, 16, 3, 3)
    result = onednn.convolution(input, weight, None, *options)
    assert result.transpose(0, 2, 3, 1).flags.c_contiguous
    back = onednn.convolution_input(result, weight, (8, 8), *options)
    assert back.transpose(0, 2, 3, 1).flags.c_contiguous
    rows = onednn.convolution(np.ascontiguousarray(input), weight, None, *options)
    assert rows.flags.c_contiguous


def test_reference_code_is_refused():
    options = ((1, 1), (1, 1), (1, 1), 1)
    onednn.convolution(numbers(1, 3, 6, 6), numbers(4, 3, 3, 3), None, *options)
    assert not [name for name in onednn.implementations() if name and name.startswith("ref")]


@CALM
@given(
    st.sampled_from(["22", "11", "21", "12", "n2", "nn", "2n", "n1", "1n"]),
    st.lists(st.sampled_from([0, 1, 2, 3, 17, 64]), min_size=3, max_size=3),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.booleans(), st.sampled_from(range(4)), st.sampled_from(range(4)),
)  # fmt: skip
def test_matmul(form, sizes, batch, broadcast, first, second):
    n, k, m = sizes
    lead = [1] * len(batch) if broadcast else batch
    a = numbers(*{"2": (n, k), "1": (k,), "n": (*batch, n, k)}[form[0]])
    b = numbers(*{"2": (k, m), "1": (k,), "n": (*lead, k, m)}[form[1]], seed=1)
    views = [
        lambda x: x,
        lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x,
        lambda x: np.repeat(x, 2, -1)[..., ::2],
        lambda x: x[..., ::-1],
    ]
    a, b = views[first](a), views[second](b)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert_allclose(matmul.matmul(a, b), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (0, 5), (2, 0)])
@pytest.mark.parametrize("bias", [None, (7,), ()])
def test_linear(shape, bias):
    a, w = numbers(*shape), numbers(7, shape[-1], seed=1)
    b = None if bias is None else numbers(*bias, seed=2)
    expected = a.astype(np.float64) @ w.T + (0 if b is None else b)
    assert_allclose(matmul.linear(a, w, b), expected, rtol=1e-5, atol=1e-5)


# --- attention ------------------------------------------------------------------------------------


def attended(query, key, value, mask, causal):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    raised = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = raised.sum(-1, keepdims=True)
    return raised / np.where(total == 0, 1, total) @ value


@pytest.mark.parametrize("length", [1, 5, 65, 300])
@pytest.mark.parametrize("source", [1, 3, 13, 64, 515])
@pytest.mark.parametrize("masked", ["", "causal", "bool", "numbers", "one key"])
def test_attention(length, source, masked):
    query, key, value = (
        numbers(2, 2, rows, 8, seed=seed) for seed, rows in enumerate((length, source, source))
    )
    mask = None
    if masked == "bool":
        mask = np.random.default_rng(4).random((2, 1, length, source)) < 0.5
        mask[..., 0, :] = False
    elif masked == "numbers":
        mask = numbers(length, source, seed=5)
    elif masked == "one key":
        mask = np.full((1, source), -np.inf, np.float32)
        mask[0, -1] = 0
    output = F.scaled_dot_product_attention(
        *[tp.from_numpy(a) for a in (query, key, value)],
        None if mask is None else tp.from_numpy(mask),
        is_causal=masked == "causal",
    )
    wide = [a.astype(np.float64) for a in (query, key, value)]
    assert_allclose(output.numpy(), attended(*wide, mask, masked == "causal"), rtol=1e-5, atol=1e-5)


# So few products that no call of oneDNN is made for them, some more, and many.
@pytest.mark.parametrize(("length", "source"), [(3, 2), (1, 9), (8, 8), (8, 9), (70, 300)])
@pytest.mark.parametrize("masked", ["", "causal", "numbers"])
def test_gradients_of_attention_are_those_of_its_parts(length, source, masked):
    arrays = [numbers(2, 3, rows, 8, seed=s) for s, rows in enumerate((length, source, source))]
    mask = numbers(length, source, seed=5) if masked == "numbers" else None
    gradients = []
    for dtype in (tp.float32, tp.float64):
        inputs = [tp.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]
        added = None if mask is None else tp.tensor(mask, dtype=dtype)
        F.scaled_dot_product_attention(
            *inputs, added, is_causal=masked == "causal"
        ).sin().sum().backward()
        gradients.append([x.grad.numpy() for x in inputs])
    for ours, exact in zip(*gradients, strict=True):
        assert_allclose(ours, exact, rtol=1e-4, atol=1e-5)


# --- threads --------------------------------------------------------------------------------------


def work():
    options = ((1, 1), (1, 1), (1, 1), 1)
    image = onednn.convolution(numbers(4, 16, 20, 20), numbers(16, 16, 3, 3), None, *options)
    return image.sum(dtype=np.float64) + matmul.matmul(numbers(200, 200), numbers(200, 200)).sum()


def test_several_python_threads_at_once():
    expected = work()
    found = []
    workers = [
        threading.Thread(target=lambda: found.extend([work() for _ in range(5)])) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_allclose(found, [expected] * 20, rtol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_computes():
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(2)
    expected = work()
    cpu_features.set_num_threads(before)
    child = os.fork()
    if not child:
        os._exit(0 if abs(work() - expected) <= 1e-4 * abs(expected) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
