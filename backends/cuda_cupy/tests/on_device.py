"""What the tests on a device share: whether there is one, and comparisons with the CPU in float64."""

import ctypes
import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cuda_cupy import plugin

REASON = plugin.runtime.unavailable_reason()
HOSTED = "HOSTED_FOLDER" in os.environ
needs_device = pytest.mark.skipif(REASON is not None, reason=f"no CUDA device: {REASON}")
# A GPU may be done at any time; the host's driver does nothing before it is waited for, and counts that.
needs_host = pytest.mark.skipif(
    not HOSTED or REASON is not None,
    reason="the device's work has to wait until told: make test-cuda-hosted",
)
# Products of this size keep a GPU busy for a while.
BUSY = 32 if HOSTED else 4096
FLOATS = [tp.float16, tp.bfloat16, tp.float32, tp.float64]
EXACT = {tp.float16: 2e-3, tp.bfloat16: 1.6e-2, tp.float32: 1e-5, tp.float64: 1e-12}


def waits():
    """Return how many calls have waited for the device."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.hosted_waits.restype = ctypes.c_ulonglong
    return driver.hosted_waits()


def randoms(*shape, seed=0):
    """Return normal numbers in float64 on the CPU."""
    return tp.from_numpy(np.asarray(np.random.default_rng(seed).standard_normal(shape)))


def integers(least, most, shape, seed=0):
    """Return integers on the CPU, the last one excluded."""
    return tp.from_numpy(np.asarray(np.random.default_rng(seed).integers(least, most, shape)))


def each(function, value):
    """Return arguments with a function applied to all tensors in them."""
    if isinstance(value, (list, tuple)):
        return type(value)([each(function, part) for part in value])
    return function(value) if isinstance(value, tp.Tensor) else value


def agree(op, arguments, dtype, layout=lambda x: x, times=1, equal_nan=False):
    """Compare an op on the device with the CPU, which takes the same numbers in float64.

    Tensors of float64 among the arguments are given as `dtype`, those of others as they are.
    """

    def given(x):
        return layout(x.to(dtype).to("cuda")) if x.dtype == tp.float64 else x.to("cuda")

    def wide(x):
        return x.to(dtype).to(tp.float64) if x.dtype == tp.float64 else x.clone()

    found = op(*each(given, arguments))
    expected = op(*each(wide, arguments))
    results = (
        [(found, expected)] if isinstance(found, tp.Tensor) else zip(found, expected, strict=True)
    )
    for one, other in results:
        assert one.device.type == "cuda"
        assert one.shape == other.shape
        if other.dtype == tp.float64:
            assert one.dtype in (dtype, tp.float32)
            close = {"rtol": times * EXACT[dtype], "atol": times * EXACT[dtype]}
            tp.testing.assert_close(one.cpu().to(tp.float64), other, equal_nan=equal_nan, **close)
        else:
            assert tp.equal(one.cpu(), other)
