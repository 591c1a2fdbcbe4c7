"""A device for tests of the suite: NumPy again, with faults planted where the environment says so.

Loaded with ``-p mirror``. ``MIRROR_FAULTS`` names functions below, or ``bare`` for a device that has
the kernels of primitives alone, ``real`` for one without complex numbers.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import tensorplug as tp
import tensorplug_cpu_numpy
from tensorplug.plugin import ALL_DTYPES, DeferredKernels, get_op, hookimpl

DEVICE = "mirror"
Numpy = type(tensorplug_cpu_numpy.plugin.tensorplug_devices()[0])


class MirrorRuntime(Numpy):
    type = DEVICE
    capabilities = Numpy.capabilities - {"dlpack", "host_memory"}

    def __init__(self):
        if "real" in PLANTED:
            self.dtypes = frozenset(dtype for dtype in ALL_DTYPES if not dtype.is_complex)
            self.capabilities = self.capabilities - {"complex"}

    def to_host(self, array):
        return np.array(array, copy=True)

    def wrap_host(self, array):
        return None

    def to_dlpack(self, array, **options):
        raise BufferError("mirror has no DLPack")

    def from_dlpack(self, producer):
        raise BufferError("mirror has no DLPack")


# --- faults: each changes the kernel of one op --------------------------------------------------


def wrong_value(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def exp(input, out=None):
        result = kernel(input)
        return result * 1.001 if input.dtype == np.float64 else result

    return exp


def wrong_shape_if_empty(kernel):
    return lambda input, dims: kernel(input, dims) if input.size else np.zeros((1,), input.dtype)


def pointwise_wrong_shape_if_empty(kernel):
    return lambda input: kernel(input) if input.size else np.zeros((1,), input.dtype)


def writes_to_its_input(kernel):
    def cumsum(input, dim):
        result = kernel(input, dim)
        if input.size and input.flags.writeable:
            input[...] = result
        return result

    return cumsum


def returns_its_input(kernel):
    return lambda input: input if input.dtype.kind in "iu" else kernel(input)


def returns_one_memory(kernel):
    kept: dict[Any, Any] = {}

    def prod(input, dim, keepdim):
        result = np.asarray(kernel(input, dim, keepdim))
        known = kept.setdefault((result.shape, result.dtype), np.empty_like(result))
        known[...] = result
        return known

    return prod


def holds_on(kernel):
    kept = []

    def tan(*args):
        results = kernel(*args)
        kept.append(results)
        return results

    return tan


def wrong_dtype(kernel):
    def amax(input, dim, keepdim):
        result = kernel(input, dim, keepdim)
        return result.astype(np.float64) if result.dtype == np.float32 else result

    return amax


def ignores_out(kernel):
    return lambda input, other, out=None: kernel(input, other)


def ignores_the_seed(kernel):
    return lambda shape, seed, offset: kernel(shape, 0, offset)


def view_is_a_copy(kernel):
    return lambda input, dims: np.array(kernel(input, dims), copy=True, order="K")


def takes_memory_for_fortran_s(kernel):
    def as_strided(input, size, stride, offset, layout=None):
        owner = input if input.base is None else input.base
        memory = np.array(owner.T, copy=True, order="C").reshape(-1)
        in_rows = owner.flags.c_contiguous or memory.dtype != input.dtype
        return kernel(input if in_rows else memory, size, stride, offset, layout)

    return as_strided


FAULTS = {
    "as_strided": takes_memory_for_fortran_s,
    "exp": wrong_value,
    "flip": wrong_shape_if_empty,
    "sin": pointwise_wrong_shape_if_empty,
    "cumsum": writes_to_its_input,
    "floor": returns_its_input,
    "prod": returns_one_memory,
    "tan": holds_on,
    "amax": wrong_dtype,
    "atan2": ignores_out,
    "philox_bits": ignores_the_seed,
    "permute": view_is_a_copy,
}
PLANTED = os.environ.get("MIRROR_FAULTS", "").split(",")


class Mirror:
    name = "mirror"

    def __init__(self):
        listed = os.environ.get("MIRROR_EXPECTED", "").splitlines()
        self.expected_failures = dict(line.split("=", 1) for line in listed)

    @hookimpl
    def tensorplug_devices(self):
        return [MirrorRuntime()]

    @hookimpl
    def tensorplug_kernels(self):
        return mirrored(tensorplug_cpu_numpy.plugin.tensorplug_kernels())


def mirrored(kernels):
    for kernel in kernels:
        if isinstance(kernel, DeferredKernels):
            yield replace(kernel, build=lambda build=kernel.build: mirrored(build()))
            continue
        if "bare" in PLANTED and get_op(kernel.op).kind == "composite":
            continue
        fault = FAULTS.get(kernel.op)
        planted = fault is not None and fault.__name__ in PLANTED
        function = fault(kernel.function) if planted else kernel.function
        out = kernel.out and (not planted or fault is ignores_out)
        yield replace(kernel, device=DEVICE, function=function, out=out)


def pytest_configure(config):
    tp.plugins.register(Mirror())


def pytest_unconfigure(config):
    tp.plugins.unregister("mirror")
