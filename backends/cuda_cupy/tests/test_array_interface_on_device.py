"""``__cuda_array_interface__`` in both directions."""

import numpy as np
import pytest
from on_device import REASON, needs_device, needs_host

import tensorplug as tp

pytestmark = needs_device
if REASON is None:
    import cupy as cp

DTYPES = [
    tp.bool, tp.uint8, tp.int8, tp.int16, tp.uint16, tp.int32, tp.uint32, tp.int64, tp.uint64, tp.float16,
    tp.bfloat16, tp.float32, tp.float64, tp.complex64, tp.complex128,
]  # fmt: skip
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.t(),
    "steps": lambda x: x[::2, 1:],
    "repeated": lambda x: x[:1].expand(3, -1),
    "scalar": lambda x: x[0, 1],
    "empty": lambda x: x[:0],
}


class Shown:
    """An object with nothing but the interface."""

    def __init__(self, array, **changes):
        told = {**array.__cuda_array_interface__, **changes}
        self.array, self.__cuda_array_interface__ = array, told


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_shown_comes_back_over_the_same_memory(dtype, layout):
    x = LAYOUTS[layout](tp.arange(12, device="cuda").reshape(3, 4).to(dtype))
    for make in (tp.as_tensor, tp.asarray):
        y = make(Shown(x))
        assert (y.dtype, y.shape, y.device) == (x.dtype, x.shape, x.device)
        assert y.is_contiguous() == x.is_contiguous()
        assert tp.equal(y.cpu(), x.cpu())
        if x.numel():
            assert (y.data_ptr(), y.stride()) == (x.data_ptr(), x.stride())
    assert tp.tensor(Shown(x)).data_ptr() != x.data_ptr() or not x.numel()


def test_what_the_interface_says():
    x = tp.zeros(3, 4, device="cuda")
    told = x.__cuda_array_interface__
    assert told == {
        "typestr": "<f4", "shape": (3, 4), "strides": None, "data": (x.data_ptr(), False), "stream": 1,
        "version": 3,
    }  # fmt: skip
    assert x.t().__cuda_array_interface__["strides"] == (4, 16)
    assert x[:0].__cuda_array_interface__["data"] == (0, False)
    assert x.bfloat16().__cuda_array_interface__["typestr"] == "<V2"
    side = tp.cuda.Stream()
    with tp.cuda.stream(side):
        assert x.__cuda_array_interface__["stream"] == side.cuda_stream
    assert not hasattr(tp.zeros(2), "__cuda_array_interface__")
    assert not hasattr(x.to_sparse(), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="on Variable that requires grad"):
        _ = tp.zeros(2, device="cuda", requires_grad=True).__cuda_array_interface__


def test_the_producer_is_kept_and_writes_are_seen():
    a = cp.arange(4, dtype="f")
    x = tp.as_tensor(Shown(a))
    x[0] = 7
    assert a.tolist() == [7, 1, 2, 3]
    assert cp.asarray(x.detach()).tolist() == [7, 1, 2, 3]
    del a
    cp.get_default_memory_pool().free_all_blocks()
    again = tp.full((4,), -1.0, device="cuda")
    assert x.tolist() == [7, 1, 2, 3]
    assert again[0] == -1
    assert x[1:].untyped_storage() == x.untyped_storage()
    assert x.untyped_storage().nbytes() == 16


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"typestr": None}, TypeError, "`typestr` must exist"),
        ({"typestr": "f"}, TypeError, "at least three characters"),
        ({"typestr": ">f4"}, ValueError, "lowest byte first"),
        ({"typestr": "<M8"}, TypeError, "can't convert"),
        ({"shape": None}, TypeError, "`shape` must exist"),
        ({"shape": 4}, TypeError, "`shape` must be a sequence"),
        ({"data": None}, TypeError, "`data` must exist"),
        ({"data": 4}, TypeError, "2-tuple of"),
        ({"data": (4096, True)}, TypeError, "read only flag is not supported"),
        ({"mask": np.ones(4)}, ValueError, "masked"),
        ({"strides": (4, 4)}, TypeError, "same length"),
        ({"strides": (3,)}, ValueError, "not a multiple of the element byte size"),
        ({"strides": (-4,)}, ValueError, "negative strides"),
        ({"stream": 0}, ValueError, "`stream` must be None"),
    ],
)
def test_what_cannot_be_taken(changes, error, says):
    with pytest.raises(error, match=says):
        tp.as_tensor(Shown(tp.ones(4, device="cuda"), **changes))


@needs_host
def test_streams_wait_for_each_other_and_the_host_for_none():
    from on_device import waits

    theirs = cp.cuda.Stream(non_blocking=True)
    tp.zeros(1, device="cuda") + 1
    with theirs:
        a = cp.arange(1000, dtype="f") * 2
        shown = Shown(a)
    before = waits()
    y = tp.as_tensor(shown) + 1
    assert waits() == before
    assert y[-1].item() == 1999
