"""Matrix products with a bias and an activation behind them, by cuBLASLt, which CuPy does not bind.

https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api. The library comes with cuBLAS; where it cannot be
loaded, or knows no algorithm for a product, :func:`product_with_bias` says so and cuBLAS serves.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
import weakref
from collections.abc import Hashable
from ctypes import POINTER, byref, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from .._cupy import cp, toolkit_library

_STATUS = {
    1: "not initialized",
    3: "allocation failed",
    7: "invalid value",
    8: "architecture mismatch",
    11: "mapping error",
    13: "execution failed",
    14: "internal error",
    15: "not supported",
    16: "license error",
}
_NOT_SUPPORTED = 15

# Of cublasLtMatmulDescAttributes_t, cublasLtEpilogue_t and cublasLtMatmulPreferenceAttributes_t.
_TURN_A, _TURN_B, _EPILOGUE, _BIAS = 3, 4, 7, 8
_ADD_BIAS = 4
#: Of cublasLtEpilogue_t, without a bias; GELU is that of the tanh.
ACTIVATIONS = {"": 0, "relu": 2, "gelu_tanh": 32}
_NO_EPILOGUE = 1
_MOST_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)
_WORKSPACE = 32 << 20  # bytes; what NVIDIA recommends for Hopper
_MOST_PLANS = 4096


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t: opaque."""

    _fields_ = [("data", c_uint64 * 8)]


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", Algorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


_HANDLE = c_void_p
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "MatmulDescCreate": (POINTER(_HANDLE), c_int, c_int),
    "MatmulDescDestroy": (_HANDLE,),
    "MatmulDescSetAttribute": (_HANDLE, c_int, c_void_p, c_size_t),
    "MatrixLayoutCreate": (POINTER(_HANDLE), c_int, c_uint64, c_uint64, c_int64),
    "MatrixLayoutDestroy": (_HANDLE,),
    "MatmulPreferenceCreate": (POINTER(_HANDLE),),
    "MatmulPreferenceDestroy": (_HANDLE,),
    "MatmulPreferenceSetAttribute": (_HANDLE, c_int, c_void_p, c_size_t),
    "MatmulAlgoGetHeuristic": (
        *[_HANDLE] * 7, c_int, POINTER(Heuristic), POINTER(c_int),
    ),
    "Matmul": (
        _HANDLE, _HANDLE, c_void_p, c_void_p, _HANDLE, c_void_p, _HANDLE, c_void_p, c_void_p, _HANDLE,
        c_void_p, _HANDLE, POINTER(Algorithm), c_void_p, c_size_t, c_void_p,
    ),
}  # fmt: skip


class CublasLtError(RuntimeError):
    """A call of cuBLASLt failed."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"cublasLt{name} failed: {_STATUS.get(status, 'status')} ({status})")
        self.status = status


@cache
def library() -> Any | None:
    """Return cuBLASLt with its functions declared, or None where there is none.

    CuPy finds the toolkit's libraries by cuda-pathfinder, so what it has loaded is taken.
    """
    try:
        return toolkit_library("cublasLt", SIGNATURES, "cublasLt")
    except (ImportError, OSError, RuntimeError, AttributeError):
        return None


def _call(name: str, *arguments: Any) -> None:
    status = getattr(library(), f"cublasLt{name}")(*arguments)
    if status:
        raise CublasLtError(name, status)


def _made(kind: str, *arguments: Any) -> Any:
    """Return a new object of the library's, which goes with the Python object that holds it."""
    handle = c_void_p()
    _call(f"{kind}Create", byref(handle), *arguments)
    destroy = getattr(library(), f"cublasLt{kind}Destroy")
    weakref.finalize(handle, destroy, handle.value).atexit = False
    return handle


def _set(kind: str, handle: Any, attribute: int, value: Any) -> None:
    _call(f"{kind}SetAttribute", handle, attribute, byref(value), ctypes.sizeof(value))


class Plan:
    """A product of given sizes and layouts, with the algorithm that the library recommends for it.

    Parameters
    ----------
    kind, compute : int
        Of cudaDataType_t, what all matrices hold, and of cublasComputeType_t, what is computed in.
    turned : tuple of int
        Whether each of both matrices is transposed.
    sizes : tuple of int
        Rows of the result, its columns, and what is summed over, as the library counts, by columns.
    steps : tuple of int
        From column to column of each of both matrices.
    alignments : tuple of int
        To how many bytes matrices and result are aligned.
    bias : int
        Where some bias is, as aligned as all that come; 0 if there is none.
    activation : str
        One of :data:`ACTIVATIONS`.
    """

    def __init__(
        self,
        kind: int,
        compute: int,
        turned: tuple[int, int],
        sizes: tuple[int, int, int],
        steps: tuple[int, int],
        alignments: tuple[int, int, int],
        bias: int,
        activation: str = "",
    ) -> None:
        rows, columns, inner = sizes
        self._lock = threading.Lock()
        self._product = _made("MatmulDesc", compute, 0)  # alpha and beta are float32
        for attribute, value in (
            (_TURN_A, turned[0]),
            (_TURN_B, turned[1]),
            (_EPILOGUE, ACTIVATIONS[activation] | (_ADD_BIAS if bias else 0) or _NO_EPILOGUE),
        ):
            _set("MatmulDesc", self._product, attribute, c_int(value))
        if bias:
            _set("MatmulDesc", self._product, _BIAS, c_void_p(bias))
        shapes = (
            (inner, rows) if turned[0] else (rows, inner),
            (columns, inner) if turned[1] else (inner, columns),
            (rows, columns),
        )
        self._layouts = [
            _made("MatrixLayout", kind, *shape, step)
            for shape, step in zip(shapes, (*steps, rows), strict=True)
        ]
        preference = _made("MatmulPreference")
        _set("MatmulPreference", preference, _MOST_WORKSPACE, c_uint64(_WORKSPACE))
        for attribute, alignment in zip(
            _ALIGNMENTS, (*alignments[:2], alignments[2], alignments[2]), strict=True
        ):
            _set("MatmulPreference", preference, attribute, ctypes.c_uint32(alignment))
        found, count = Heuristic(), c_int()
        a, b, result = self._layouts
        _call(
            "MatmulAlgoGetHeuristic",
            cp.cuda.device.get_cublas_handle(), self._product, a, b, result, result, preference, 1,
            byref(found), byref(count),
        )  # fmt: skip
        if not count.value or found.state:
            raise CublasLtError("MatmulAlgoGetHeuristic", found.state or _NOT_SUPPORTED)
        self._found = found
        self._algorithm = byref(found.algorithm)
        self._bias = bias

    def run(self, a: int, b: int, bias: int, result: int) -> None:
        """Queue the product of matrices at some addresses on the current stream."""
        workspace = cp.empty(self._found.workspace, np.uint8)
        _, one, zero = _factors()
        layout_a, layout_b, layout = self._layouts
        with self._lock:  # the bias is written into the description, which all threads share
            if bias != self._bias:
                _set("MatmulDesc", self._product, _BIAS, c_void_p(bias))
                self._bias = bias
            _call(
                "Matmul",
                # Whose handle is a cuBLASLt handle, too, as the documentation says.
                cp.cuda.device.get_cublas_handle(), self._product, one, a, layout_a, b, layout_b, zero,
                result, layout, result, layout, self._algorithm, workspace.data.ptr,
                self._found.workspace, cp.cuda.get_current_stream().ptr,
            )  # fmt: skip


@cache
def _factors() -> tuple[Any, int, int]:
    """Return numbers 1 and 0 in host memory, which has to stay, and where they are."""
    numbers = np.array([1, 0], np.float32)
    return numbers, numbers.ctypes.data, numbers.ctypes.data + numbers.itemsize


_plans: dict[Hashable, Plan | None] = {}


def product_with_bias(
    kind: int,
    compute: int,
    turned: tuple[int, int],
    sizes: tuple[int, int, int],
    steps: tuple[int, int],
    addresses: tuple[int, int, int, int],
    activation: str = "",
) -> bool:
    """Queue a product with a bias added to each column, perhaps with an activation; False if none serves.

    Parameters
    ----------
    kind, compute, turned, sizes, steps
        See :class:`Plan`.
    addresses : tuple of int
        Of both matrices, the bias or 0, and the result.
    activation : str
        One of :data:`ACTIVATIONS`.
    """
    if library() is None:
        return False
    a, b, bias, result = addresses
    alignments = (_alignment(a), _alignment(b), _alignment(result))
    device = cp.cuda.runtime.getDevice()
    key = (
        *(device, kind, compute, turned, sizes, steps, alignments),
        *(bias and _alignment(bias), activation),
    )
    try:
        if key not in _plans:
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            _plans[key] = None  # what fails is not tried again
            _plans[key] = Plan(kind, compute, turned, sizes, steps, alignments, bias, activation)
        plan = _plans[key]
        if plan is not None:
            plan.run(a, b, bias, result)
    except CublasLtError as error:
        _plans[key] = plan = None
        if error.status != _NOT_SUPPORTED:
            warnings.warn(f"{error}; cuBLAS serves instead", UserWarning, stacklevel=2)
    return plan is not None


def _alignment(place: int) -> int:
    """Return the largest power of 2, up to 256, that an address is a multiple of."""
    return min(place & -place, 256) or 256
