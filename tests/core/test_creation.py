"""Making tensors: what torch makes of the same arguments, and where it refuses."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(width=32),
    st.complex_numbers(max_magnitude=1e6),
)


@st.composite
def nested(draw):
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    rank = draw(st.integers(0, 3))
    leaves = (st.booleans(), st.integers(-100, 100), st.floats(-1e6, 1e6), NUMBERS)[rank]

    def build(sizes):
        if not sizes:
            return draw(leaves)
        return [build(sizes[1:]) for _ in range(sizes[0])]

    return build(shape)


def same(ours, theirs):
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert np.array_equal(np.asarray(ours.tolist()), np.asarray(theirs.tolist()), equal_nan=True)


@given(nested())
@settings(max_examples=300, deadline=None)
def test_the_dtype_is_inferred_as_torch_does(data):
    same(tp.tensor(data), torch.tensor(data))


@pytest.mark.parametrize(
    "data",
    [
        [],
        (),
        [[]],
        range(3),
        np.float64(1.5),
        np.int16(3),
        [np.float32(1), np.float32(2)],
        [np.int8(1), 2],
        np.array([[1, 2], [3, 4]], np.int16),
        np.array([1.5, 2.5], np.float16)[::-1],
        np.array(3),
        [np.array([1, 2]), [3.0, 4]],
        np.array([1 + 2j], np.complex64),
        np.array([True, False]),
        np.array([1, 2], ">i4"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
def test_arrays_and_sequences(data):
    native = data.astype(data.dtype.newbyteorder("=")) if isinstance(data, np.ndarray) else data
    theirs = native.copy() if isinstance(native, np.ndarray) else native
    same(tp.tensor(data), torch.tensor(theirs))


def test_tensors_among_sequences():
    same(tp.tensor([tp.tensor(1), tp.tensor(2.5)]), torch.tensor([1, 2.5]))
    assert tp.tensor([tp.tensor([1, 2]), tp.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int8", "uint8", "bool"])
@pytest.mark.parametrize(
    "data",
    [1, [0, 1, 2], [1.5, 0.0], [True, False], [[-1, 0]]],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_a_given_dtype_converts(data, name):
    same(tp.tensor(data, dtype=getattr(tp, name)), torch.tensor(data, dtype=getattr(torch, name)))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([[1], [2, 3]], ValueError),
        ([1, [2]], TypeError),
        ([[1], 2], TypeError),
        ("a", TypeError),
        (None, RuntimeError),
        ([None], RuntimeError),
        ({1: 2}, RuntimeError),
        (object(), RuntimeError),
        (np.array(["a"]), TypeError),
        (np.array([1], object), TypeError),
        (2**63, ValueError),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_bad_data_raises_what_torch_raises(data, error):
    with pytest.raises(error):
        torch.tensor(data)
    with pytest.raises(error):
        tp.tensor(data)


@pytest.mark.parametrize(
    ("data", "name"),
    [([300], "uint8"), ([-300], "int8"), ([float("nan")], "int32"), ([float("inf")], "int64")],
)
def test_a_number_out_of_range_raises(data, name):
    with pytest.raises(RuntimeError, match="overflow"):
        torch.tensor(data, dtype=getattr(torch, name))
    with pytest.raises(RuntimeError, match="overflow"):
        tp.tensor(data, dtype=getattr(tp, name))


def test_a_negative_number_wraps_in_an_unsigned_dtype():
    assert tp.tensor([-1], dtype=tp.uint8).tolist() == [255]


def test_requires_grad_is_for_floats():
    assert tp.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        tp.tensor([1], requires_grad=True)


def test_tensor_copies():
    array = np.zeros(2)
    made = tp.tensor(array)
    array[0] = 1
    assert made.tolist() == [0, 0]
    source = tp.zeros(2, requires_grad=True)
    copy = tp.tensor(source)
    assert copy.is_leaf
    assert not copy.requires_grad
    assert copy.data_ptr() != source.data_ptr()


def test_as_tensor_shares_where_it_can():
    array = np.zeros(2, np.float32)
    shared = tp.as_tensor(array)
    array[0] = 1
    assert shared.tolist() == [1, 0]
    assert tp.as_tensor(shared) is shared
    assert tp.as_tensor(array, dtype=tp.float64).dtype is tp.float64
    assert tp.as_tensor(array[::-1]).tolist() == [0, 1]


def test_asarray_copies_when_told_and_refuses_when_told():
    array = np.zeros(2, np.float32)
    assert tp.asarray(array).data_ptr() == array.ctypes.data
    assert tp.asarray(array, copy=True).data_ptr() != array.ctypes.data
    with pytest.raises(ValueError, match="alias"):
        tp.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="alias"):
        tp.asarray(array, dtype=tp.float64, copy=False)


@pytest.mark.parametrize(
    "options", [{}, {"copy": True}, {"dtype": tp.float64}, {"requires_grad": True}]
)
def test_asarray_of_what_requires_grad_goes_on_requiring_it(options):
    x = tp.ones(2, requires_grad=True)
    tp.asarray(x * 3, **options).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert not tp.asarray(x * 3, **options | {"requires_grad": False}).requires_grad


@pytest.mark.parametrize(
    "call",
    [
        "Tensor()",
        "Tensor(2, 3).shape",
        "Tensor([1, 2])",
        "Tensor((2, 3))",
        "LongTensor([1.5])",
        "IntTensor([[1, 2]])",
        "BoolTensor([2, 0])",
        "FloatTensor([1, 2])",
        "zeros(2).type()",
        "zeros(2, dtype=P.bfloat16).type()",
        "zeros(2).type(P.LongTensor)",
        "isinstance(P.zeros(2), P.FloatTensor)",
        "isinstance(P.zeros(2), P.LongTensor)",
    ],
)
def test_the_old_constructors(call):
    ours = eval(f"P.{call}" if not call.startswith("isinst") else call, {"P": tp})
    theirs = eval(f"P.{call}" if not call.startswith("isinst") else call, {"P": torch})
    assert repr(ours) == repr(theirs).replace("torch.Size", "Size").replace("torch.", "tensorplug.")


@pytest.mark.parametrize(
    ("buffer", "options", "error"),
    [
        (bytearray(b"abcd"), {"dtype": "int16"}, None),
        (bytearray(b"abcd"), {"dtype": "int16", "count": 1, "offset": 2}, None),
        (bytearray(b"abcd"), {"dtype": "int16", "offset": 1}, ValueError),
        (bytearray(), {"dtype": "int8"}, ValueError),
        ([1], {"dtype": "int8"}, ValueError),
        (bytearray(b"abcd"), {"dtype": "int8", "count": 5}, ValueError),
        (bytearray(b"abcd"), {"dtype": "int8", "offset": 4}, ValueError),
        (bytearray(b"abcd"), {"dtype": "int8", "count": 0}, ValueError),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_frombuffer(buffer, options, error):
    ours = {**options, "dtype": getattr(tp, options["dtype"])}
    theirs = {**options, "dtype": getattr(torch, options["dtype"])}
    if error is None:
        same(tp.frombuffer(buffer, **ours), torch.frombuffer(buffer, **theirs))
        return
    with pytest.raises(error):
        torch.frombuffer(buffer, **theirs)
    with pytest.raises(error):
        tp.frombuffer(buffer, **ours)


def test_frombuffer_shares_memory():
    buffer = bytearray(b"abcd")
    shown = tp.frombuffer(buffer, dtype=tp.uint8)
    shown[0] = 122
    assert buffer == b"zbcd"


@given(
    st.floats(-50, 50),
    st.floats(-50, 50),
    st.floats(-5, 5).filter(lambda step: abs(step) > 0.01),
    st.sampled_from(["float32", "float64", "int64", "int8", "int16", "int32"]),
    st.sampled_from(["arange", "range"]),
)
@settings(max_examples=300, deadline=None)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_ranges_have_as_many_numbers_as_torchs(start, end, step, name, function):
    assume("float" in name or abs(step) >= 1)  # torch divides by a step that it has rounded to 0
    ours, theirs = {"dtype": getattr(tp, name)}, {"dtype": getattr(torch, name)}
    try:
        expected = getattr(torch, function)(start, end, step, **theirs)
    except (RuntimeError, ValueError):
        with pytest.raises(RuntimeError):
            getattr(tp, function)(start, end, step, **ours)
        return
    made = getattr(tp, function)(start, end, step, **ours)
    assert tuple(made.shape) == tuple(expected.shape)
    assert np.allclose(made.tolist(), expected.tolist(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize(
    "bounds",
    [(1e300, 1e300), (0, 1e300), (0, 1e300, 1e299), (1e39, 1e39, 1), (0, 1, 1e-30),
     (2**63, 2**63 + 2), (2**70,)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("function", ["arange", "range"])
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_ranges_of_large_bounds(function, bounds, name):
    if function == "range" and (len(bounds) == 1 or bounds[-1] == 1e-30):
        return  # torch takes no single bound, and divides by zero
    ours, theirs = {"dtype": getattr(tp, name)}, {"dtype": getattr(torch, name)}
    try:
        expected = getattr(torch, function)(*bounds, **theirs)
    except (RuntimeError, ValueError, OverflowError):
        with pytest.raises(RuntimeError):
            getattr(tp, function)(*bounds, **ours)
        return
    made = getattr(tp, function)(*bounds, **ours)
    assert made.tolist() == expected.tolist()


@given(
    st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 30),
    st.sampled_from(["float32", "float64", "int64", "int32"]),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_linspace_is_torchs(start, end, steps, name):
    made = tp.linspace(start, end, steps, dtype=getattr(tp, name))
    expected = torch.linspace(start, end, steps, dtype=getattr(torch, name))
    tolerance = 1 if name.startswith("int") else 1e-5  # torch computes the step in float32
    assert np.allclose(made.tolist(), expected.tolist(), rtol=1e-6, atol=tolerance)
    if steps > 1:
        assert (made[0], made[-1]) == (start, end)


def test_the_default_device_is_used_until_told_otherwise():
    with tp.device("meta"):
        assert tp.zeros(2).is_meta
        assert tp.tensor([1]).is_meta
        with tp.device("cpu"):
            assert not tp.zeros(2).is_meta
        assert tp.arange(3).is_meta
    assert not tp.zeros(2).is_meta
    tp.set_default_device("meta")
    try:
        assert tp.rand(2).is_meta
        assert tp.get_default_device().type == "meta"
    finally:
        tp.set_default_device(None)
    assert not tp.rand(2).is_meta


def test_the_default_dtype_is_used():
    tp.set_default_dtype(tp.float64)
    try:
        assert tp.tensor(1.5).dtype is tp.float64
        assert tp.tensor(1j).dtype is tp.complex128
        assert tp.zeros(1).dtype is tp.float64
    finally:
        tp.set_default_dtype(tp.float32)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_full_infers_single_precision_of_complex_numbers_at_least(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is the reference")
    found = []
    for module in (tp, torch):
        module.set_default_dtype(getattr(module, name))
        try:
            made = [module.full((2,), value).dtype for value in (True, 1, 1.5, 1j)]
        finally:
            module.set_default_dtype(module.float32)
        found.append([str(dtype).rpartition(".")[2] for dtype in made])
    assert found[0] == found[1]


def test_a_new_tensor_is_no_view():
    for made in (tp.zeros(2, 3), tp.rand(2, 3), tp.randn(2), tp.eye(2), tp.arange(3)):
        assert made._base is None
        assert made.is_contiguous()
