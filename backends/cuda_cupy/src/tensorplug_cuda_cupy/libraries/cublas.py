"""Products by cuBLAS, in CUDA graphs too.

CuPy calls cuBLAS while no stream is captured only; cuBLAS itself can be captured
(https://docs.nvidia.com/cuda/cublas/#cuda-graphs-support), and is called directly then.
"""

from __future__ import annotations

from ctypes import c_int, c_longlong, c_void_p
from functools import cache
from typing import Any

from .._cupy import LazyModule, cp, toolkit_library

_libraries: Any = LazyModule("cupy_backends.cuda.libs")

#: Of the functions that are called, the arguments as https://docs.nvidia.com/cuda/cublas/ declares them.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasGemmStridedBatchedEx": (
        c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p,  # handle, transposes, m, n, k, alpha
        c_void_p, c_int, c_int, c_longlong, c_void_p, c_int, c_int, c_longlong,  # a, b
        c_void_p, c_void_p, c_int, c_int, c_longlong,  # beta, c
        c_int, c_int, c_int,  # count, compute type, algorithm
    ),
}  # fmt: skip


def products(*arguments: Any) -> None:
    """Queue products of matrices on the current stream.

    Parameters
    ----------
    *arguments
        Those of ``cublasGemmStridedBatchedEx`` but its handle.

    Raises
    ------
    RuntimeError
        If cuBLAS fails.
    """
    handle = cp.cuda.device.get_cublas_handle()
    try:
        _libraries.cublas.gemmStridedBatchedEx(handle, *arguments)
    except NotImplementedError:
        _call("cublasSetStream_v2", handle, cp.cuda.get_current_stream().ptr)
        _call("cublasGemmStridedBatchedEx", handle, *arguments)


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed: status {status} of cublasStatus_t")


@cache
def _library() -> Any:
    """Return the library that CuPy has loaded, with the functions declared."""
    return toolkit_library("cublas", SIGNATURES)
