"""Gradients of scans past infinite elements, and norms that are no numbers, beside torch."""

import itertools

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

PARTS = [1.0, -2.0, float("inf"), -float("inf")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("values", [*itertools.product(PARTS, repeat=3)])
def test_gradients_of_logcumsumexp(values, dtype):
    found = []
    for library in (torch, tp):
        x = library.tensor([values, [0.5, 1.0, -1.0]], dtype=getattr(library, dtype))
        x.requires_grad_()
        result = x.logcumsumexp(1)
        result.backward(library.tensor([[1.0, 2.0, 3.0]] * 2, dtype=x.dtype))
        found.append([np.array(t.detach().tolist()) for t in (result, x.grad)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-5 if dtype in ("float32", "float64") else 2e-2
        )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_logarithms_of_sums_past_infinite_terms(dtype):
    parts = [complex(*pair) for pair in itertools.product([*PARTS, float("nan"), 0.0], repeat=2)]
    pairs = [*itertools.product(parts, repeat=2)]
    ours, theirs = (
        library.tensor(pairs, dtype=getattr(library, dtype)).logcumsumexp(1).numpy()
        for library in (tp, torch)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3, float("inf")])
def test_renorm_of_what_has_no_norm(p):
    found = []
    for library in (torch, tp):
        x = library.tensor([[float("nan"), 3.0], [float("inf"), 1.0], [3.0, 4.0], [0.0, 0.0]])
        x.requires_grad_()
        result = x.renorm(p, 0, 1.0)
        result.backward(library.ones(4, 2))
        found.append([t.detach().numpy() for t in (result, x.grad)])
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
    np.testing.assert_allclose(found[1][1][2:], found[0][1][2:], rtol=1e-4, atol=1e-6)
