"""Fourier transforms: the identities that define them, and torch's corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorplug as tp
from tensorplug.testing import assert_close

NORMS = [None, "backward", "ortho", "forward"]


def signal(*shape: int, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)


@given(st.integers(1, 12), st.sampled_from(NORMS), st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_inverses(n: int, norm: str | None, seed: int) -> None:
    x = tp.tensor(signal(2, n, seed=seed))
    assert_close(tp.fft.ifft(tp.fft.fft(x, norm=norm), norm=norm), x)
    real = x.real.contiguous()
    assert_close(tp.fft.irfft(tp.fft.rfft(real, norm=norm), n, norm=norm), real)
    assert_close(tp.fft.hfft(tp.fft.ihfft(real, norm=norm), n, norm=norm), real)
    assert_close(tp.fft.irfftn(tp.fft.rfftn(real, norm=norm), (2, n), norm=norm), real)


@given(st.integers(1, 12), st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_parseval(n: int, seed: int) -> None:
    x = tp.tensor(signal(n, seed=seed))
    assert_close(tp.linalg.vector_norm(tp.fft.fft(x, norm="ortho")), tp.linalg.vector_norm(x))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 3, 6, 0])
def test_as_torch(agree: Callable[..., None], name: str, norm: Any, n: Any) -> None:
    data = signal(2, 4).real if name in ("rfft", "ihfft") else signal(2, 4)
    agree(lambda module, x: getattr(module.fft, name)(x, n, norm=norm), data, gradient=True)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn", "fft2"])
@pytest.mark.parametrize(
    ("s", "dim"), [(None, None), ((3, 5), None), ((-1, 3), (0, 1)), (None, (1, 0)), ((2,), (0, 1)),
                   (None, (0, 0)), ((1, 1, 1, 1), None)],
)  # fmt: skip
def test_dimensions_as_torch(agree: Callable[..., None], name: str, s: Any, dim: Any) -> None:
    data = signal(4, 3, 2).real if name in ("rfftn", "ihfftn") else signal(4, 3, 2)
    dims = (-2, -1) if dim is None and name == "fft2" else dim
    agree(lambda module, x: getattr(module.fft, name)(x, s, dims), data, gradient=True)


def test_precision_is_kept() -> None:
    assert tp.fft.fft(tp.ones(4)).dtype is tp.complex64
    assert tp.fft.rfft(tp.ones(4, dtype=tp.float64)).dtype is tp.complex128
    assert tp.fft.irfft(tp.ones(3, dtype=tp.complex64)).dtype is tp.float32
    assert tp.fft.fft(tp.ones(4, dtype=tp.int32)).dtype is tp.complex64


def test_nothing_to_transform() -> None:
    assert tp.fft.fft(tp.zeros(0, 4)).shape == (0, 4)
    with pytest.raises(RuntimeError, match="data points"):
        tp.fft.fft(tp.zeros(4, 0))
