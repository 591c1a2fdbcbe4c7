"""Samples of images, pooling and polynomials against the decompositions or kernels below."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

F = tp.nn.functional


def same(call: Any, atol: float) -> None:
    """Assert that a call gives the same by cpu_numpy."""
    ours = call()
    with tp.prefer("cpu_numpy"):
        below = call()
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (ours, below)), strict=True):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol, atol)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grid_sample(dims: int, dtype: Any) -> None:
    rng = np.random.default_rng(dims)
    modes = ("bilinear", "nearest", "bicubic")[: 5 - dims]
    for mode, padding, align in itertools.product(
        modes, ("zeros", "border", "reflection"), (False, True)
    ):
        for size in ((5, 7, 4), (1, 3, 2)):
            image = tp.from_numpy(rng.standard_normal((2, 3, *size[:dims])).astype(dtype))
            places = rng.standard_normal((2, 4, *(5, 3)[: dims - 1], dims)) * 1.3
            places.reshape(-1)[:3] = np.inf, np.nan, -np.inf
            grid = tp.from_numpy(places.astype(dtype))
            same(lambda x=image, g=grid, o=(mode, padding, align): F.grid_sample(x, g, *o), 1e-4)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("within", [0.7, 1.1])
def test_many_positions(dims: int, dtype: Any, within: float) -> None:
    """Whole blocks of positions, all inside or some beyond, forward and backward."""
    rng = np.random.default_rng(dims)
    image = rng.standard_normal((2, 3, *(6, 9, 8)[:dims])).astype(dtype)
    image[..., 0] = (
        np.inf
    )  # what is beyond the image gets nothing of it, whatever stands where it is read
    finite = np.where(np.isinf(image), 1, image).astype(dtype)
    places = rng.uniform(-within, within, (2, 5, *(30, 4)[: dims - 1], dims)).astype(dtype)
    for mode in ("bilinear", "nearest", "bicubic")[: 5 - dims]:

        def gradients(mode: str = mode) -> Any:
            x = tp.from_numpy(finite).requires_grad_()
            grid = tp.from_numpy(places).requires_grad_()
            result = F.grid_sample(x, grid, mode, align_corners=False)
            return result.detach(), *tp.autograd.grad((result * result).sum(), (x, grid))

        same(gradients, 1e-3)
        right = tp.from_numpy(np.abs(places))  # beyond the first column, or nowhere
        same(lambda m=mode, g=right * 3: F.grid_sample(tp.from_numpy(image), g, m).isfinite(), 0)


def test_grid_sample_of_other_strides_and_empty() -> None:
    image, grid = tp.randn(3, 4, 5, 2).permute(3, 0, 1, 2), tp.rand(2, 6, 3, 2).transpose(1, 2)
    same(lambda: F.grid_sample(image, grid, align_corners=False), 1e-5)
    assert F.grid_sample(image, grid[:, :0], align_corners=False).shape == (2, 3, 0, 6)
    assert F.grid_sample(image[:0], grid[:0], align_corners=False).shape == (0, 3, 3, 6)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adaptive_max_pool(dims: int, dtype: Any) -> None:
    rng = np.random.default_rng(dims)
    values = rng.standard_normal((2, 3, *(7, 5, 6)[:dims])).astype(dtype)
    values.reshape(-1)[[5, 6]] = np.nan, -np.inf
    values.reshape(-1)[20:24] = 7  # of equal ones the first
    x = tp.from_numpy(values)
    function: Any = getattr(F, f"adaptive_max_pool{dims}d")
    for size in (1, 2, 3, 4):
        same(lambda size=size: function(x, size, return_indices=True), 0)
        same(lambda size=size: function(x.mT if dims > 1 else x, size), 0)


def test_polynomials() -> None:
    rng = np.random.default_rng(0)
    names = [name for name in dir(tp.special) if "_polynomial_" in name]
    assert len(names) == 12
    for name, dtype in itertools.product(names, (np.float32, np.float64)):
        function = getattr(tp.special, name)
        x = tp.from_numpy(rng.standard_normal((6, 5)).astype(dtype))
        n = tp.from_numpy((rng.integers(-2, 9, (6, 5)) + rng.random((6, 5))).astype(dtype))
        n[0, 0], n[0, 1] = float("nan"), float("-inf")
        for args in ((x, n), (x, 3), (x[:, :1], n[:1]), (x.mT, n.mT), (0.5, n), (x[:0], n[:0])):
            same(lambda f=function, args=args: f(*args), 2e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("shape", [(8,), (3, 5, 4), (0, 4)])
def test_transforms(shape: tuple[int, ...]) -> None:
    for dtype, atol in ((tp.float32, 1e-5), (tp.float64, 1e-12)):
        x = tp.randn(shape, dtype=dtype)
        c = x + 1j
        names = ["fft", "ifft", "hfft", "irfft", "rfft", "ihfft"]
        names += ["fftn", "rfftn"] if x.numel() else []
        names += ["fft2", "ifft2"] if x.numel() and x.ndim > 1 else []
        for name, norm in itertools.product(names, (None, "ortho", "forward")):
            function = getattr(tp.fft, name)
            given = x if name in ("rfft", "ihfft", "rfftn") else c
            same(lambda f=function, t=given, norm=norm: f(t, norm=norm), atol)
