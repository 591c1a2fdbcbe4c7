"""``testing.assert_close`` and ``testing.make_tensor``, beside those of torch."""

import math
import re
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing import assert_close, make_tensor

nan, inf = math.nan, math.inf


def tensors(module: Any, *values: Any, **options: Any) -> list[Any]:
    return [module.tensor(value, **options) for value in values]


def outcome(function: Any, *args: Any, **options: Any) -> tuple[type, list[float]]:
    """Return the type of what a call raises, and the numbers in the message."""
    try:
        function(*args, **options)
    except (AssertionError, TypeError, ValueError) as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("First at")]
        found = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", "\n".join(lines))
        return type(error), [float(number) for number in found]
    return type(None), []


PAIRS = {
    "equal": lambda m: tensors(m, [1.0, 2.0], [1.0, 2.0]),
    "close": lambda m: tensors(m, [1.0, 2.0], [1.0, 2.000001]),
    "different": lambda m: tensors(m, [1.0, 2.0, 4.0], [1.0, 4.0, 4.0]),
    "matrix": lambda m: tensors(m, [[1.0, 2.0], [8.0, 4.0]], [[1.0, 2.5], [4.0, 4.0]]),
    "scalars": lambda m: tensors(m, 1.0, 2.0),
    "int": lambda m: tensors(m, [1, 2], [1, 5]),
    "bool": lambda m: tensors(m, [True, False], [False, False]),
    "complex": lambda m: tensors(m, [1 + 1j], [1 + 2j]),
    "half": lambda m: tensors(m, [1.0, 1.001], [1.0005, 1.5], dtype=m.float16),
    "nan": lambda m: tensors(m, [nan, 1.0], [nan, 1.0]),
    "inf": lambda m: tensors(m, [inf, -inf], [inf, -inf]),
    "finite for inf": lambda m: tensors(m, [1.0], [inf]),
    "inf for finite": lambda m: tensors(m, [inf], [1.0]),
    "signs of inf": lambda m: tensors(m, [inf], [-inf]),
    "empty": lambda m: [m.zeros(0, 3), m.ones(0, 3)],
    "shape": lambda m: [m.zeros(2), m.zeros(3)],
    "rank": lambda m: [m.zeros(1), m.zeros(())],
    "dtype": lambda m: [m.zeros(2), m.zeros(2, dtype=m.float64)],
    "numbers": lambda m: [1.0, 1.5],
    "whole numbers": lambda m: [3, 3],
    "unlike numbers": lambda m: [1, 1.0],
    "truths": lambda m: [True, False],
    "none": lambda m: [None, None],
    "text": lambda m: ["a", "a"],
    "tensor and list": lambda m: [m.zeros(2), [0.0, 0.0]],
    "tensor and number": lambda m: [m.tensor(1.0), 1.0],
    "sequences": lambda m: [[1.0, m.zeros(2)], (1.0, m.zeros(2))],
    "lengths": lambda m: [[1, 2], [1]],
    "nested": lambda m: [{"x": [1, m.zeros(2)]}, {"x": [1, m.ones(2)]}],
    "keys": lambda m: [{"a": 1}, {"b": 1}],
    "arrays": lambda m: [np.zeros(2), np.ones(2)],
    "equal arrays": lambda m: [np.zeros(2), np.zeros(2)],
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(
    "options",
    [{}, {"equal_nan": True}, {"rtol": 0, "atol": 0}, {"rtol": 0.3, "atol": 0.1}],
    ids=str,
)
@pytest.mark.parametrize("checks", [{}, {"check_dtype": False}], ids=str)
def test_the_verdict_and_the_numbers_are_those_of_torch(name, options, checks):
    torch = pytest.importorskip("torch", reason="torch is the reference of this comparison")
    if "dtype" in name and checks:
        pytest.skip("torch promotes both")
    ours = outcome(assert_close, *PAIRS[name](tp), **options, **checks)
    theirs = outcome(torch.testing.assert_close, *PAIRS[name](torch), **options, **checks)
    assert ours[0] is theirs[0]
    if ours[0] is AssertionError and name not in ("keys", "dtype", "unlike numbers"):
        assert ours[1] == pytest.approx(theirs[1], rel=2e-2)  # torch divides in the dtype


def message(*args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_close(*args, **options)
    return str(caught.value)


def test_the_message_tells_what_differs():
    text = message(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 3.0]))
    assert text.startswith("Tensor-likes are not close!")
    assert "Mismatched elements: 1 / 2 (50.0%)" in text
    assert "Greatest absolute difference: 1.0 at index (1,)" in text
    assert "First at index (1,): got 2.0, expected 3.0" in text
    assert "'shape'" in message(tp.zeros(2), tp.zeros(3))
    assert "'dtype'" in message(tp.zeros(2), tp.zeros(2, dtype=tp.int64))
    assert "item [1]['a']" in message([0, {"a": tp.zeros(1)}], [0, {"a": tp.ones(1)}])


def test_one_tolerance_alone():
    for options in ({"rtol": 0.1}, {"atol": 0.1}):
        with pytest.raises(ValueError, match="must be either specified"):
            assert_close(1.0, 1.0, **options)


def test_own_messages():
    pair = tp.zeros(2), tp.ones(2)
    assert message(*pair, msg="mine") == "mine"
    assert message(*pair, msg=lambda text: f"before: {text}").startswith("before: Tensor-likes")


def test_strides_and_devices():
    a, b = tp.zeros(2, 3).t(), tp.zeros(3, 2)
    assert_close(a, b)
    assert "stride" in message(a, b, check_stride=True)
    with pytest.raises((AssertionError, RuntimeError, NotImplementedError)):
        assert_close(tp.zeros(2), tp.zeros(2, device="meta"))


def test_large_integers_are_compared_exactly():
    a = tp.tensor([2**62, -(2**63)])
    assert_close(a, a.clone())
    assert "Tensor-likes are not equal" in message(a, a + tp.tensor([1, 0]))
    assert "Mismatched elements: 1 / 1" in message(
        tp.tensor([255], dtype=tp.uint8), tp.tensor([0], dtype=tp.uint8)
    )


def test_differences_of_integers_are_integers():
    text = message(tp.tensor([[1, 2], [3, 2**62]]), tp.tensor([[1, 2], [5, 2**62 + 1]]))
    assert "Greatest absolute difference: 2 at index (1, 0)" in text
    assert "Greatest relative difference: 0.4 at index (1, 0)" in text


def test_values_that_are_not_there_are_equal():
    assert_close(tp.empty(2, device="meta"), tp.empty(2, device="meta"))
    assert "'shape'" in message(tp.empty(2, device="meta"), tp.empty(3, device="meta"))
    assert "'device'" in message(tp.empty(2, device="meta"), tp.zeros(2))


def test_what_no_pair_compares_is_named_by_its_type():
    for one, other in (("a", "a"), (tp.zeros(1), np.zeros(1)), (object(), 1)):
        named = re.escape(f"inputs of type {type(one)} and {type(other)}")
        with pytest.raises(TypeError, match=named):
            assert_close(one, other)
    weight = tp.nn.Parameter(tp.zeros(1))
    with pytest.raises(TypeError, match=re.escape(str(type(weight)))):
        assert_close(tp.zeros(1), weight, allow_subclasses=False)


# --- sparse tensors -----------------------------------------------------------------------------


def coo(m: Any, indices: Any, values: Any, size: Any = (2, 2)) -> Any:
    return m.sparse_coo_tensor(indices, values, size)


def csr(m: Any, rows: Any, columns: Any, values: Any) -> Any:
    return m.sparse_csr_tensor(rows, columns, values, (2, 2))


SPARSE = {
    "equal COO": lambda m: [coo(m, [[0, 1], [1, 0]], [1.0, 2.0]) for _ in range(2)],
    "one coalesced": lambda m: [
        coo(m, [[0, 0], [1, 1]], [1.0, 2.0]),
        coo(m, [[0, 0], [1, 1]], [1.0, 2.0]).coalesce(),
    ],
    "another order": lambda m: [
        coo(m, [[0, 1], [1, 0]], [1.0, 2.0]),
        coo(m, [[1, 0], [0, 1]], [2.0, 1.0]),
    ],
    "COO indices": lambda m: [
        coo(m, [[0, 1], [1, 0]], [1.0, 2.0]),
        coo(m, [[0, 1], [1, 1]], [1.0, 2.0]),
    ],
    "COO values": lambda m: [
        coo(m, [[0, 1], [1, 0]], [1.0, 2.0]),
        coo(m, [[0, 1], [1, 0]], [1.0, 3.0]),
    ],
    "close COO": lambda m: [
        coo(m, [[0, 1], [1, 0]], [1.0, 2.0]),
        coo(m, [[0, 1], [1, 0]], [1.0, 2.000001]),
    ],
    "COO counts": lambda m: [
        coo(m, [[0, 1], [1, 0]], [1.0, 2.0]),
        coo(m, [[0, 1, 1], [1, 0, 0]], [1.0, 1.0, 1.0]),
    ],
    "sparse dimensions": lambda m: [m.ones(2, 2).to_sparse(), m.ones(2, 2).to_sparse(1)],
    "equal CSR": lambda m: [csr(m, [0, 1, 2], [1, 0], [1.0, 2.0]) for _ in range(2)],
    "CSR rows": lambda m: [
        csr(m, [0, 1, 2], [0, 1], [1.0, 2.0]),
        csr(m, [0, 2, 2], [0, 1], [1.0, 2.0]),
    ],
    "CSR columns": lambda m: [
        csr(m, [0, 1, 2], [1, 0], [1.0, 2.0]),
        csr(m, [0, 1, 2], [1, 1], [1.0, 2.0]),
    ],
    "CSR values": lambda m: [
        csr(m, [0, 1, 2], [1, 0], [1.0, 2.0]),
        csr(m, [0, 1, 2], [1, 0], [1.0, 3.0]),
    ],
    "CSR counts": lambda m: [
        csr(m, [0, 1, 2], [1, 0], [1.0, 2.0]),
        csr(m, [0, 1, 1], [1], [1.0]),
    ],
    "layouts": lambda m: [m.ones(2, 2).to_sparse(), m.ones(2, 2)],
    "sparse layouts": lambda m: [m.ones(2, 2).to_sparse(), m.ones(2, 2).to_sparse_csr()],
    "values of layouts": lambda m: [m.ones(2, 2).to_sparse(), m.zeros(2, 2).to_sparse_csr()],
}


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("checks", [{}, {"check_layout": False}, {"check_stride": True}], ids=str)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_compared_part_by_part(name, checks):
    torch = pytest.importorskip("torch", reason="torch is the reference of this comparison")
    ours = theirs = ""
    try:
        assert_close(*SPARSE[name](tp), **checks)
    except AssertionError as error:
        ours = str(error).splitlines()[0]
    try:
        torch.testing.assert_close(*SPARSE[name](torch), **checks)
    except AssertionError as error:
        theirs = str(error).splitlines()[0]
    assert ours.replace("tensorplug.", "torch.") == theirs


# --- make_tensor --------------------------------------------------------------------------------

DTYPES = ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("noncontiguous", [False, True])
def test_make_tensor_is_of_the_form_that_torch_gives(dtype, shape, noncontiguous):
    torch = pytest.importorskip("torch", reason="torch is the reference of this comparison")
    ours = make_tensor(shape, dtype=getattr(tp, dtype), noncontiguous=noncontiguous)
    theirs = torch.testing.make_tensor(
        shape, dtype=getattr(torch, dtype), device="cpu", noncontiguous=noncontiguous
    )
    assert ours.shape == tuple(theirs.shape)
    assert ours.dtype.name == dtype
    if ours.numel():
        assert ours.stride() == theirs.stride()


def test_make_tensor_keeps_to_its_bounds():
    for dtype in (tp.int32, tp.float32, tp.float64):
        made = make_tensor(1000, dtype=dtype, low=-2, high=5)
        assert made.min() >= -2
        assert made.max() < 5
    made = make_tensor(1000, dtype=tp.complex64, low=1, high=2)
    assert made.real.min() >= 1
    assert made.imag.max() <= 2
    assert make_tensor(1000, dtype=tp.uint8).max() < 10
    assert set(make_tensor(100, dtype=tp.bool).tolist()) == {True, False}


def test_make_tensor_without_zeros():
    for dtype in (tp.bool, tp.int8, tp.float32, tp.complex128):
        made = make_tensor(500, dtype=dtype, low=0, high=2, exclude_zero=True)
        assert (made != 0).all()


def test_make_tensor_requires_grad():
    assert make_tensor(2, dtype=tp.float32, requires_grad=True).requires_grad
    with pytest.raises((RuntimeError, ValueError)):
        make_tensor(2, dtype=tp.int64, requires_grad=True)


def test_make_tensor_refuses_bounds_in_the_wrong_order():
    with pytest.raises(ValueError, match="low"):
        make_tensor(2, dtype=tp.float32, low=2, high=1)
