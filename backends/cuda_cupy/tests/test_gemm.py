"""What cuBLAS is asked to compute is the matrix product: a stand-in follows its documentation on the host."""

import ctypes
import types

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cuda_cupy.kernels import gemm

NATIVE = {
    0: np.float32,
    1: np.float64,
    2: np.float16,
    4: np.complex64,
    5: np.complex128,
    14: ml_dtypes.bfloat16,
}


def matrix(pointer, kind, rows, columns, step):
    """Return the matrix at an address, by columns `step` elements apart."""
    assert step >= max(1, rows)
    native = np.dtype(NATIVE[kind])
    size = ((columns - 1) * step + rows) * native.itemsize
    memory = np.frombuffer((ctypes.c_char * size).from_address(pointer), native)
    return np.lib.stride_tricks.as_strided(
        memory, (rows, columns), (native.itemsize, step * native.itemsize)
    )


def gemm_strided_batched(
    handle, turned_a, turned_b, m, n, k, alpha, a, a_kind, a_step, a_next, b, b_kind, b_step, b_next,
    beta, c, c_kind, c_step, c_next, count, compute, algorithm,
):  # fmt: skip
    calls.append((turned_a, turned_b, compute, a_next, b_next))
    number = np.dtype(NATIVE[a_kind] if compute == 70 or a_kind in (4, 5) else np.float32)
    for pointer, value in ((alpha, 1), (beta, 0)):
        assert (
            np.frombuffer((ctypes.c_char * number.itemsize).from_address(pointer), number)[0]
            == value
        )
    for i in range(count):
        shape_a = (k, m) if turned_a else (m, k)
        shape_b = (n, k) if turned_b else (k, n)
        left = matrix(a + i * a_next * np.dtype(NATIVE[a_kind]).itemsize, a_kind, *shape_a, a_step)
        right = matrix(b + i * b_next * np.dtype(NATIVE[b_kind]).itemsize, b_kind, *shape_b, b_step)
        result = (left.T if turned_a else left) @ (right.T if turned_b else right)
        matrix(c + i * c_next * np.dtype(NATIVE[c_kind]).itemsize, c_kind, m, n, c_step)[...] = (
            result
        )


calls = []


class Pointed(np.ndarray):
    """An array that tells its address as CuPy's does."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    calls.clear()
    arrays = types.SimpleNamespace(
        zeros=lambda *a: np.zeros(*a).view(Pointed),
        empty=lambda *a: np.empty(*a).view(Pointed),
        broadcast_to=lambda *a: np.broadcast_to(*a, subok=True),
        ascontiguousarray=lambda a: np.ascontiguousarray(a).view(Pointed),
        cuda=types.SimpleNamespace(device=types.SimpleNamespace(get_cublas_handle=lambda: 0)),
    )
    monkeypatch.setattr(gemm, "cp", arrays)
    cublas = types.SimpleNamespace(gemmStridedBatchedEx=gemm_strided_batched)
    monkeypatch.setattr(gemm.cublas, "cp", arrays)
    monkeypatch.setattr(gemm.cublas, "_libraries", types.SimpleNamespace(cublas=cublas))


def randoms(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape)
    return numbers.astype(dtype).view(Pointed)


@pytest.mark.parametrize("dtype", [*NATIVE.values()])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((1, 4), (4, 1)), ((3, 1), (1, 5)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (1, 2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
        ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((0, 3, 4), (4, 5)), ((2, 0, 3, 4), (1, 1, 4, 5)),
    ],
)  # fmt: skip
def test_shapes(dtype, a, b):
    left, right = randoms(a, dtype), randoms(b, dtype, 1)
    found = gemm.matmul(left, right)
    expected = np.asarray(left) @ np.asarray(right)
    assert found.shape == expected.shape
    assert found.dtype == np.dtype(dtype)
    tolerance = {2: 2e-2 if np.dtype(dtype) == np.float16 else 1e-1}.get(
        np.dtype(dtype).itemsize, 1e-5
    )
    np.testing.assert_allclose(
        np.asarray(found).astype(complex), expected.astype(complex), rtol=tolerance, atol=tolerance
    )


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.swapaxes(
        np.ascontiguousarray(np.swapaxes(x, -1, -2)).view(Pointed), -1, -2
    ),
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "wide rows": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "backwards": lambda x: x[..., ::-1, :][..., ::-1, :][..., ::-1],
    "the same row": lambda x: np.broadcast_to(x[..., :1, :], x.shape, subok=True),
}


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 4), (4, 1))])
def test_layouts(first, second, shapes):
    left = LAYOUTS[first](randoms(shapes[0])).view(Pointed)
    right = LAYOUTS[second](randoms(shapes[1], seed=1)).view(Pointed)
    found = gemm.matmul(left, right)
    np.testing.assert_allclose(found, np.asarray(left) @ np.asarray(right), rtol=1e-12, atol=1e-12)


def test_transposes_are_not_copied():
    left, right = randoms((3, 4)), randoms((5, 4), seed=1)
    gemm.matmul(left, right.T)
    assert calls[-1][:2] == (1, 0)  # turned as cuBLAS sees them, the second one first
    gemm.matmul(randoms((4, 3)).T, right.T)
    assert calls[-1][:2] == (1, 1)


def test_one_matrix_serves_a_whole_batch():
    gemm.product(randoms((5, 3, 4)), randoms((1, 4, 2)))
    assert calls[-1][3] == 0


def test_tf32_is_asked_for(monkeypatch):
    single, double = randoms((2, 2), np.float32), randoms((2, 2))
    gemm.matmul(single, single)
    assert calls[-1][2] == 68
    monkeypatch.setattr(tp.backends.cuda.matmul, "allow_tf32", True)
    gemm.matmul(single, single)
    assert calls[-1][2] == 77
    gemm.matmul(double, double)
    assert calls[-1][2] == 70
    monkeypatch.setattr(tp.backends.cuda.matmul, "allow_tf32", False)
    try:
        tp.set_float32_matmul_precision("high")
        gemm.matmul(single, single)
        assert calls[-1][2] == 77
    finally:
        tp.set_float32_matmul_precision("highest")
