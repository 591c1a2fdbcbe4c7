"""Max pooling without places: the same values, bit for bit, as with them, whatever lies in the windows."""

import itertools
import random

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import pooling_max

DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8")


def image(chance, dims, dtype, last):
    shape = (
        chance.randint(0, 3),
        chance.randint(1, 20),
        *[chance.randint(3, 40) for _ in range(dims)],
    )
    rng = np.random.default_rng(chance.randint(0, 10**6))
    x = rng.integers(0, 9, shape).astype(dtype)  # many are equal
    if x.dtype.kind == "f":
        some = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40], dtype)
        x = np.where(rng.random(shape) < 0.2, rng.choice(some, shape), x).astype(dtype)
        x = np.where(rng.random(shape) < 0.1, -np.inf, x).astype(dtype)
    if last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    return x


@pytest.mark.parametrize(
    ("dims", "dtype", "last"), list(itertools.product((1, 2, 3), DTYPES, (False, True)))
)
def test_values(dims, dtype, last):
    chance = random.Random(f"{dims} {dtype} {last}")
    for _ in range(25):
        x = image(chance, dims, dtype, last)
        kernel = tuple([chance.randint(1, min(size, 4)) for size in x.shape[2:]])
        stride = tuple([chance.choice((1, 2, 2, 3)) for _ in kernel])
        padding = tuple([chance.randint(0, size // 2) for size in kernel])
        dilation = tuple(
            [
                chance.choice((1, 1, 2)) if 2 * (k - 1) < size + 2 * around else 1
                for k, size, around in zip(kernel, x.shape[2:], padding, strict=True)
            ]
        )
        options = (kernel, stride, padding, dilation, chance.random() < 0.5)
        wanted, _ = pooling_max.max_pool(x, *options)
        found = pooling_max.max_pool_values(x, *options)
        assert found.dtype == wanted.dtype
        assert found.strides == wanted.strides
        assert found.tobytes() == wanted.tobytes(), (x.shape, options)
