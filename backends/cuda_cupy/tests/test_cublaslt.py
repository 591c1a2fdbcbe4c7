"""What cuBLASLt is asked for is a linear layer: ctypes calls a library that follows its documentation."""

import ctypes
import gc
import subprocess
import tempfile
import types
from pathlib import Path

import host
import ml_dtypes
import numpy as np
import pytest
from test_gemm import LAYOUTS, Pointed, randoms

import tensorplug as tp
from tensorplug_cuda_cupy import cublaslt
from tensorplug_cuda_cupy.kernels import gemm, networks

FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16]


@pytest.fixture(scope="module")
def built():
    source = Path(__file__).with_name("cublaslt_stand_in.cpp")
    with tempfile.TemporaryDirectory(prefix="tensorplug-cublaslt-") as folder:
        target = f"{folder}/cublaslt.so"
        command = [
            host.compiler(),
            "-std=c++20",
            "-O1",
            "-shared",
            "-fPIC",
            str(source),
            "-o",
            target,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        loaded = cublaslt.declared(ctypes.CDLL(target))
        loaded.living.restype = ctypes.c_int64
        yield loaded


@pytest.fixture
def library(built, monkeypatch):
    cuda = types.SimpleNamespace(
        device=types.SimpleNamespace(get_cublas_handle=lambda: 1),
        get_current_stream=lambda: types.SimpleNamespace(ptr=1),
        runtime=types.SimpleNamespace(getDevice=lambda: 0),
    )
    arrays = types.SimpleNamespace(
        empty=lambda *a: np.empty(*a).view(Pointed),
        ascontiguousarray=lambda a: np.ascontiguousarray(a).view(Pointed),
        cuda=cuda,
    )
    monkeypatch.setattr(cublaslt, "library", lambda: built)
    for module in (cublaslt, gemm, networks):
        monkeypatch.setattr(module, "cp", arrays)
    monkeypatch.setattr(networks, "matmul", lambda a, b: (np.asarray(a) @ b).view(Pointed))
    cublaslt._plans.clear()
    yield built
    cublaslt._plans.clear()
    gc.collect()
    assert built.living() == 0  # what was made is destroyed


def check(found, x, weight, bias):
    wide = [np.asarray(a).astype(np.float64) for a in (x, weight, bias)]
    expected = wide[0] @ wide[1].T + wide[2]
    assert found.shape == expected.shape
    assert found.dtype == x.dtype
    tolerance = {4: 1e-5, 2: 2e-2 if x.dtype == np.float16 else 1e-1}[x.dtype.itemsize]
    np.testing.assert_allclose(
        np.asarray(found).astype(np.float64), expected, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 3, 4), (1, 4), (5, 1, 2, 4)])
def test_linear(library, dtype, shape):
    x, weight, bias = randoms(shape, dtype), randoms((5, 4), dtype, 1), randoms((5,), dtype, 2)
    check(networks.linear(x, weight, bias), x, weight, bias)
    assert None not in cublaslt._plans.values()


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_layouts(library, first, second):
    x = LAYOUTS[first](randoms((3, 4), np.float32)).view(Pointed)
    weight = LAYOUTS[second](randoms((5, 4), np.float32, 1)).view(Pointed)
    bias = randoms((5,), np.float32, 2)
    check(networks.linear(x, weight, bias), x, weight, bias)
    assert None not in cublaslt._plans.values()


def test_the_weight_is_not_copied(library):
    networks.linear(*(randoms(s, np.float32) for s in ((3, 4), (5, 4), (5,))))
    assert ctypes.c_int.in_dll(library, "last_turns").value == 1


def test_a_plan_serves_all_of_its_kind(library):
    for seed in range(3):
        x, weight, bias = (randoms(s, np.float32, seed) for s in ((3, 4), (5, 4), (5,)))
        check(networks.linear(x, weight, bias), x, weight, bias)
    kinds = {key[:-2] for key in cublaslt._plans}  # they may differ in alignment
    assert len(kinds) == 1


def test_memory_that_is_hardly_aligned(library):
    room = np.arange(64, dtype=np.float32).view(Pointed)
    for shift in range(4):
        x, weight, bias = (
            room[shift:][:12].reshape(3, 4),
            room[shift + 13 :][:20].reshape(5, 4),
            room[shift:][:5],
        )
        check(networks.linear(x, weight, bias), x, weight, bias)
    assert None not in cublaslt._plans.values()


def test_tf32_is_asked_for(library, monkeypatch):
    arguments = [randoms(s, np.float32) for s in ((3, 4), (5, 4), (5,))]
    for allowed, expected in ((False, 68), (True, 77)):
        monkeypatch.setattr(tp.backends.cuda.matmul, "allow_tf32", allowed)
        networks.linear(*arguments)
        assert ctypes.c_int.in_dll(library, "last_compute").value == expected


@pytest.mark.parametrize(
    ("shapes", "dtype"),
    [
        (((3, 4), (5, 4), (5,)), np.float64),
        (((0, 4), (5, 4), (5,)), np.float32),
        (((3, 0), (5, 0), (5,)), np.float32),
        (((3, 4), (5, 4), ()), np.float32),
        (((3, 4), (5, 4), (1,)), np.float32),
        (((3, 4), (4,), ()), np.float32),
    ],
)
def test_what_is_left_to_cublas(library, shapes, dtype):
    x, weight, bias = (np.asarray(randoms(s, dtype)).view(Pointed) for s in shapes)
    expected = np.asarray(x) @ np.asarray(weight).T + np.asarray(bias)
    np.testing.assert_allclose(networks.linear(x, weight, bias), expected, rtol=1e-5)
    assert not cublaslt._plans


def test_a_product_that_the_library_does_not_know(library):
    x, weight, bias = (randoms(s, np.float32) for s in ((3, 4), (13, 4), (13,)))
    for _ in range(2):
        check(networks.linear(x, weight, bias), x, weight, bias)
    assert list(cublaslt._plans.values()) == [None]


def test_an_error_is_told_once_and_cublas_serves(library):
    x, weight, bias = (randoms(s, np.float32) for s in ((3, 4), (5, 4), (5,)))
    library.refuse(14)
    with pytest.warns(
        UserWarning, match=r"cublasLtMatmul failed: internal error \(14\); cuBLAS serves"
    ):
        check(networks.linear(x, weight, bias), x, weight, bias)
    check(networks.linear(x, weight, bias), x, weight, bias)


def test_no_library(library, monkeypatch):
    monkeypatch.setattr(cublaslt, "library", lambda: None)
    x, weight, bias = (randoms(s, np.float32) for s in ((3, 4), (5, 4), (5,)))
    check(networks.linear(x, weight, bias), x, weight, bias)


def test_the_library_is_looked_for_where_cupy_finds_its_own():
    pytest.importorskip("cupy", reason="CuPy is not installed: make test-cuda-compile installs it")
    from cuda import pathfinder

    assert "cublasLt" in pathfinder.SUPPORTED_NVIDIA_LIBNAMES
    assert issubclass(pathfinder.DynamicLibNotFoundError, RuntimeError)
    cublaslt.library()  # None, or the library; never an error


def test_structures_have_the_sizes_of_c():
    assert ctypes.sizeof(cublaslt.Algorithm) == 64
    assert ctypes.sizeof(cublaslt.Heuristic) == 96
