"""Sums and products of sparse tensors of two dtypes are those of dense ones, or refused as they are."""

import itertools

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
