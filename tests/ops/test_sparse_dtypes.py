"""Sums and products of sparse tensors of two dtypes are those of dense ones, or refused as they are."""

import itertools

import numpy as np
import pytest

import tensorplug as tp

DTYPES = (tp.bool, tp.uint8, tp.int64, tp.float16, tp.float32, tp.float64, tp.complex64)
LAYOUTS = {"coo": tp.Tensor.to_sparse, "csr": tp.Tensor.to_sparse_csr, "dense": tp.Tensor.clone}
CALLS = [("mul", {}), *itertools.product(("add", "sub"), ({}, {"alpha": 2}, {"alpha": 1.5}))]


def outcome(call, a, b, options):
    try:
        result = getattr(a, call)(b, **options)
    except RuntimeError:
        return "refused", a.to_dense().tolist()
    return str(result.dtype), result.to_dense().tolist()


#: Nothing dense is added to a sparse tensor in place.
FORMS = [
    (first, second, in_place)
    for first, second, in_place in itertools.product(LAYOUTS, LAYOUTS, ("", "_"))
    if not in_place or first == "dense" or second != "dense"
]


@pytest.mark.slow
@pytest.mark.parametrize(("first_layout", "second_layout", "in_place"), FORMS)
def test_as_of_dense_tensors(first_layout, second_layout, in_place):
    for (name, options), first, second in itertools.product(CALLS, DTYPES, DTYPES):
        a = tp.tensor([[0.0, 2.0], [1.0, 0.0]]).to(first)
        b = tp.tensor([[0.0, 1.5], [2.5, 3.0]]).to(second)
        call = name + in_place
        wanted = outcome(call, a.clone(), b, options)
        found = outcome(call, LAYOUTS[first_layout](a), LAYOUTS[second_layout](b), options)
        assert found == wanted, (call, first, second, options)


NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
#: Of an array of three dimensions, two of them sparse; the last is dense.
SUMS = [None, 0, 1, 2, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2)]


def twice(L, dtype, dense=2):
    """A sparse tensor with three elements, two of them at one place."""
    values = L.tensor(np.arange(1, 3 * dense + 1).reshape(3, dense)).to(getattr(L, dtype))
    return L.sparse_coo_tensor(L.tensor([[0, 1, 0], [1, 0, 1]]), values, (2, 2, dense))


def said(tensor):
    return (
        str(tensor.dtype).partition(".")[2],
        str(tensor.layout).partition(".")[2],
        tensor.to_dense().resolve_conj().tolist(),
    )


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("dim", SUMS)
def test_sums_are_of_torchs_dtype(dim, dtype):
    torch = pytest.importorskip("torch", reason="values are compared with torch's")
    calls = [lambda L, x: x.sum() if dim is None else x.sum(dim)]
    if dim in (None, 0, 1) or dtype != "bool":  # of others torch counts both elements at one place
        calls.append(lambda L, x: L.sparse.sum(x) if dim is None else L.sparse.sum(x, dim))
    for call in calls:
        try:
            wanted = said(call(torch, twice(torch, dtype)))
        except RuntimeError:  # of narrow integers, over a dense dimension
            continue
        assert said(call(tp, twice(tp, dtype))) == wanted


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", ["H", "mH", "mT", "adjoint", "times a batch"])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("dtype", NAMES)
def test_turned_and_multiplied_as_dense(dtype, layout, name):
    if name == "times a batch" and dtype == "bool":
        pytest.skip("bool has no sparse products")

    def call(matrix):
        if name == "times a batch":
            return tp.ones(2, 1, 2).to(matrix.dtype) @ matrix
        result = getattr(matrix, name)
        return result() if callable(result) else result

    matrix = tp.tensor(np.array([[0, 1, 2], [3 + 1j, 0, 0]])).to(getattr(tp, dtype))
    found, wanted = call(getattr(matrix, layout)()), call(matrix)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.to_dense().tolist() == wanted.tolist()
