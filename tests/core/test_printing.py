"""Tensors print as torch's do, character by character but for the name of the package."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool",
    "complex64", "complex128", "uint16", "uint32", "uint64",
]  # fmt: skip


@pytest.fixture(autouse=True)
def usual_options():
    yield
    tp.set_printoptions(profile="default")
    torch.set_printoptions(profile="default")


def normal(text: str) -> str:
    # The longer name of the package may move a note to the next line.
    return re.sub(r",\s+(dtype|size|requires_grad)", r", \1", text.replace("torch.", "tensorplug."))


def both(values, name):
    """The same numbers as a tensor of ours and of torch's."""
    with np.errstate(all="ignore"):
        if name == "bfloat16":
            theirs = torch.tensor(values).to(torch.bfloat16)
            return tp.tensor(theirs.float().numpy()).to(tp.bfloat16), theirs
        array = values.astype(name)
    array = np.asarray(array)
    return tp.tensor(array), torch.from_numpy(array)


@st.composite
def arrays(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    scale = 10.0 ** draw(st.integers(-8, 11))
    special = st.sampled_from([0.0, -0.0, 1.0, -2.0, 1000.5, np.nan, np.inf, -np.inf, 1e-5])
    numbers = st.one_of(st.floats(-1, 1).map(lambda x: x * scale), special)
    values = draw(hnp.arrays(np.float64, shape, elements=numbers, fill=st.just(0.25 * scale)))
    return np.round(values) if draw(st.booleans()) else values


@st.composite
def options(draw):
    if draw(st.booleans()):
        return {}
    return {
        "precision": draw(st.integers(0, 7)),
        "threshold": draw(st.integers(0, 60)),
        "edgeitems": draw(st.integers(0, 4)),
        "linewidth": draw(st.integers(20, 120)),
        "sci_mode": draw(st.sampled_from([None, True, False])),
    }


@given(arrays(), st.sampled_from(DTYPES), options(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_the_text_is_torchs(values, name, chosen, requires_grad):
    if name.startswith(("int", "uint")):
        values = np.nan_to_num(values, nan=0, posinf=0, neginf=0).clip(-100, 100)
        values = np.abs(values) if name.startswith("u") else values
    if name.startswith("complex"):
        values = np.array(values, np.complex128)
        values.imag = values.real[::-1] if values.ndim else 2
    ours, theirs = both(values, name)
    if requires_grad and ours.is_floating_point():
        ours.requires_grad_()
        theirs.requires_grad_()
    for library in (tp, torch):
        library.set_printoptions(profile="default")
        library.set_printoptions(**chosen)
    assert normal(repr(ours)) == normal(repr(theirs))


@pytest.mark.parametrize("shape", [(1001,), (50, 50), (7, 200), (3, 4, 200), (2, 30, 30, 2)])
@pytest.mark.parametrize("name", ["float32", "int64", "complex64", "bool"])
def test_large_tensors_are_summarized(shape, name):
    values = np.random.default_rng(0).standard_normal(shape) * 30
    ours, theirs = both(values, name)
    assert normal(repr(ours)) == normal(repr(theirs))


def test_a_meta_tensor_has_no_numbers():
    made = tp.zeros(2, 3, device="meta", dtype=tp.int64)
    assert repr(made) == normal(repr(torch.zeros(2, 3, device="meta", dtype=torch.int64)))


def test_the_node_is_named():
    x = tp.ones(2, requires_grad=True)
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"


def test_a_subclass_has_its_name():
    class Special(tp.Tensor):
        pass

    assert repr(tp.zeros(1).as_subclass(Special)) == "Special([0.])"


def test_options_last_until_the_block_ends():
    with tp.printoptions(precision=1):
        assert repr(tp.tensor(1.25)) == "tensor(1.2)"
        assert tp.get_printoptions()["precision"] == 1
    assert repr(tp.tensor(1.25)) == "tensor(1.2500)"
    with pytest.raises(ValueError, match="profile"):
        tp.set_printoptions(profile="loud")


def test_a_0d_tensor_formats_as_its_number():
    assert f"{tp.tensor(1.5):.2f}" == "1.50"
    assert f"{tp.tensor([1])}" == "tensor([1])"
