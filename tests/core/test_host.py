"""NumPy, DLPack and pickles."""

import copy
import pickle

import numpy as np
import pytest

import tensorplug as tp


def test_from_numpy_shares_memory_both_ways():
    array = np.arange(6.0).reshape(2, 3)
    shown = tp.from_numpy(array.T)
    assert shown.stride() == (1, 3)
    array[0, 1] = 7
    assert shown[1, 0] == 7
    shown[2, 1] = 8
    assert array[1, 2] == 8
    assert tp.from_numpy(array).numpy() is not None


@pytest.mark.parametrize(
    ("array", "error"),
    [
        ([1], TypeError),
        (np.float32(1), TypeError),
        (np.zeros(3)[::-1], ValueError),
        (np.array(["a"]), TypeError),
        (np.zeros(3, ">f4"), ValueError),
        (np.zeros(3, "datetime64[s]"), TypeError),
        (np.zeros(3, [("a", "f4"), ("b", "i1")])["a"], ValueError),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_what_cannot_be_shared_raises_as_in_torch(array, error):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    with pytest.raises(error):
        torch.from_numpy(array)
    with pytest.raises(error):
        tp.from_numpy(array)


def test_read_only_memory_is_warned_of():
    array = np.zeros(2)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        tp.from_numpy(array)
    assert tp.tensor(array).tolist() == [0, 0]


def test_numpy_shares_memory():
    made = tp.zeros(2)
    made.numpy()[0] = 3
    assert made.tolist() == [3, 0]
    assert np.asarray(made)[0] == 3
    assert np.array(made, dtype=np.int32).dtype == np.int32


def test_numpy_refuses_as_torch_does():
    with pytest.raises(RuntimeError, match="requires grad"):
        tp.ones(1, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="meta"):
        tp.ones(1, device="meta").numpy()
    assert tp.ones(1, requires_grad=True).numpy(force=True).tolist() == [1]


def test_numpy_leaves_binary_operators_to_the_tensor():
    assert isinstance(np.float64(2) * tp.ones(2), tp.Tensor)
    assert (np.float32(2) * tp.ones(2)).dtype is tp.float32


def test_dlpack_shares_memory_both_ways():
    array = np.arange(3)
    shown = tp.from_dlpack(array)
    array[0] = 5
    assert shown.tolist() == [5, 1, 2]
    back = np.from_dlpack(shown)
    assert back.tolist() == [5, 1, 2]
    assert tp.from_dlpack(shown).data_ptr() == shown.data_ptr()
    assert tp.from_dlpack(shown, copy=True).data_ptr() != shown.data_ptr()


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch", reason="torch is the other side")
    theirs = torch.arange(4.0).reshape(2, 2)
    shown = tp.from_dlpack(theirs.t())
    assert shown.tolist() == [[0, 2], [1, 3]]
    theirs[0, 1] = 9
    assert shown[1, 0] == 9
    assert torch.from_dlpack(tp.tensor([1.5])).tolist() == [1.5]


@pytest.mark.parametrize("version", [None, (1, 0)], ids=["without a version", "with one"])
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
)
def test_what_comes_through_dlpack_may_be_written_to(dtype, version):
    x = tp.ones(3, dtype=getattr(tp, dtype))
    shown = tp.from_dlpack(x.__dlpack__(max_version=version))
    shown[1] = 0
    assert x.tolist() == shown.tolist() == [1, 0, 1]
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream=object())


def test_read_only_memory_stays_so():
    class ReadOnly:
        """A producer that says so: the flag of NumPy's, through DLPack 1.0."""

        array = np.arange(3.0)

        def __dlpack__(self, **options):
            self.array.flags.writeable = False
            return self.array.__dlpack__(max_version=(1, 0))

        def __dlpack_device__(self):
            return (1, 0)

    shown = tp.from_dlpack(ReadOnly())
    with pytest.raises((ValueError, RuntimeError), match="read-only"):
        shown[1] = 0
    assert ReadOnly.array.tolist() == [0, 1, 2]


def test_memory_that_no_device_takes():
    class Elsewhere:
        def __dlpack__(self, **_):
            raise BufferError("not here")

        def __dlpack_device__(self):
            return (16, 0)

    for make in (tp.tensor, tp.as_tensor, tp.asarray):
        with pytest.raises(BufferError, match="no device takes memory of DLPack device"):
            make(Elsewhere())


def test_dlpack_refuses_what_it_cannot_carry():
    with pytest.raises(BufferError, match="gradient"):
        tp.ones(1, requires_grad=True).__dlpack__()
    with pytest.raises(TypeError, match="__dlpack"):
        tp.from_dlpack([1])


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool", "complex64", "uint16", "int64"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles(name, protocol):
    made = tp.tensor([[0, 1], [1, 0]]).to(getattr(tp, name))
    again = pickle.loads(pickle.dumps(made, protocol))
    assert again.tolist() == made.tolist()
    assert again.dtype is made.dtype


def test_a_pickle_keeps_shared_memory_strides_and_attributes():
    base = tp.arange(6.0).reshape(2, 3)
    base.note = "kept"
    base_again, view = pickle.loads(pickle.dumps((base, base.t()[1:])))
    assert base_again.note == "kept"
    assert view.stride() == (1, 3)
    base_again[0, 2] = 9
    assert view[1, 0] == 9


def test_a_pickle_keeps_requires_grad_class_and_device():
    parameter = tp.nn.Parameter(tp.ones(2))
    again = pickle.loads(pickle.dumps(parameter))
    assert type(again) is tp.nn.Parameter
    assert again.requires_grad
    assert again.is_leaf
    assert pickle.loads(pickle.dumps(tp.ones(2, device="meta"))).is_meta
    assert pickle.loads(pickle.dumps(tp.ones(2)[:0])).shape == (0,)


def test_copies():
    made = tp.ones(2, requires_grad=True)
    assert copy.copy(made).data_ptr() == made.data_ptr()
    deep = copy.deepcopy(made)
    assert deep.data_ptr() != made.data_ptr()
    assert deep.requires_grad
