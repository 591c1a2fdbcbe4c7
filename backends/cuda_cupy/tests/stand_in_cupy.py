"""A stand-in for CuPy over memory of the host, whose arrays refuse to tell their contents.

The whole backend runs on it: its runtime, its table of kernels, its CUDA sources compiled for the host.
Whatever would wait for a GPU, to look at a number or by synchronizing, raises :class:`Waited`.
"""

import sys
import types

import numpy as np


class Waited(AssertionError):
    """Somebody asked for what a GPU has not computed yet."""


def _refuse(what):
    def refused(self, *args, **kwargs):
        raise Waited(f"{what} of an array on the device")

    return refused


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Memory:
    device_id = 0

    def __init__(self, ptr):
        self.ptr = ptr


class Pointer:
    device_id = 0

    def __init__(self, array):
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        self.ptr = array.ctypes.data
        self.mem = Memory(root.ctypes.data)
        self._array = array

    def copy_from_host_async(self, source, size):
        import ctypes

        ctypes.memmove(self.ptr, source, size)

    def copy_to_host_async(self, target, size):
        import ctypes

        ctypes.memmove(target, self.ptr, size)


class ndarray(np.ndarray):  # noqa: N801  CuPy's name
    device = Guard()

    @property
    def data(self):
        return Pointer(self)

    __bool__ = _refuse("the truth value")
    __int__ = __index__ = __float__ = __complex__ = _refuse("the number")
    item = tolist = get = tobytes = __iter__ = _refuse("the contents")


def on_device(value):
    if isinstance(value, tuple):
        return tuple([on_device(part) for part in value])
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(ndarray)
    return value


class Stream:
    ptr = 0
    device_id = -1

    def synchronize(self):
        raise Waited("a stream was synchronized")

    def is_capturing(self):
        return False


class Event:
    done = True

    def __init__(self, **_):
        pass

    def record(self, stream):
        pass


class Pinned(bytearray):
    pass


class Pool:
    def malloc(self, size):
        raise NotImplementedError


class Cupy(types.ModuleType):
    """NumPy's functions, whose results are on the device."""

    ndarray = ndarray

    def __init__(self):
        super().__init__("cupy")
        pool, stream = Pool(), Stream()
        runtime = types.SimpleNamespace(
            getDevice=lambda: 0, getDeviceCount=lambda: 1, deviceSynchronize=stream.synchronize
        )
        self.get_default_memory_pool = lambda: pool
        self.cuda = types.SimpleNamespace(
            runtime=runtime,
            alloc_pinned_memory=Pinned,
            PinnedMemoryPointer=Pinned,
            Event=Event,
            get_allocator=lambda: None,
            get_current_stream=lambda *_: stream,
            device=types.SimpleNamespace(get_cublas_handle=lambda: 1),
            Device=lambda index: Guard(),
        )

    def ElementwiseKernel(self, inputs, outputs, body, name, preamble):
        import host

        def kernel(a, b, out=None):
            dtype = np.result_type(a, b)
            pair = [np.ascontiguousarray(x, dtype) for x in np.broadcast_arrays(a, b)]
            result = host.elementwise(name.removeprefix("tensorplug_"), *pair)
            if out is None:
                return on_device(result.reshape(np.broadcast_shapes(a.shape, b.shape)))
            out[...] = result
            return out

        return kernel

    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, (np.ufunc, type)) or not callable(found):
            return found

        def function(*args, **kwargs):
            return on_device(found(*args, **kwargs))

        return function


def install():
    """Let the backend find this in place of CuPy, a driver and a GPU; its sources run on the host."""
    import host
    from test_gemm import gemm_strided_batched

    from tensorplug_cuda_cupy import cublaslt, presence, sources
    from tensorplug_cuda_cupy.kernels import convolution, cudnn_attention, gemm, rownorm

    syncdetect = types.ModuleType("cupy._core.syncdetect")
    syncdetect._declare_synchronize = lambda: None
    sys.modules.update(
        {
            "cupy": Cupy(),
            "cupy._core": types.ModuleType("cupy._core"),
            syncdetect.__name__: syncdetect,
        }
    )
    presence.unusable = lambda: None
    sources.launch = host.launch
    rownorm._LANES = 4  # of the host's blocks, which have 16 threads
    cublaslt.library = lambda: None
    convolution.convolve = cudnn_attention.forward = cudnn_attention.backward = lambda *_: False
    cublas = types.SimpleNamespace(gemmStridedBatchedEx=gemm_strided_batched)
    gemm.cublas._libraries = types.SimpleNamespace(cublas=cublas)
