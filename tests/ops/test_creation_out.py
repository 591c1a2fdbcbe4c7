"""``out=`` of functions that make tensors: its dtype, its memory, its shape; against torch."""

import itertools

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch says what belongs into out=")

FACTORIES = {
    "arange": lambda m, **out: m.arange(4, **out),
    "range": lambda m, **out: m.range(1, 4, **out),
    "linspace": lambda m, **out: m.linspace(0, 6, 4, **out),
    "logspace": lambda m, **out: m.logspace(0, 3, 4, base=2, **out),
    "zeros": lambda m, **out: m.zeros(4, **out),
    "ones": lambda m, **out: m.ones(4, **out),
    "full": lambda m, **out: m.full((4,), 1, **out),
    "eye": lambda m, **out: m.eye(4, 1, **out),
    "randperm": lambda m, **out: m.randperm(4, **out).sort().values,
    "randint": lambda m, **out: m.randint(3, 4, (4,), **out),
    "rand": lambda m, **out: m.rand(4, **out) < 1,
    "randn": lambda m, **out: m.randn(4, **out) < 99,
    "normal": lambda m, **out: m.normal(0.0, 1.0, (4,), **out) < 99,
}
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
TARGETS = {
    "whole": lambda m, dtype: (whole := m.empty(4, dtype=dtype), whole),
    "view": lambda m, dtype: ((base := m.zeros(9, dtype=dtype)), base[1::2]),
    "square": lambda m, dtype: ((base := m.zeros(3, 3, dtype=dtype)), base[1:, 1:]),
    "empty": lambda m, dtype: (whole := m.empty(0, dtype=dtype), whole),
}


def made(m, factory, dtype, target):
    base, out = TARGETS[target](m, getattr(m, dtype))
    try:
        before = tuple(out.shape)
        result = FACTORIES[factory](m, out=out)
    except (NotImplementedError, RuntimeError) as error:
        return type(error)
    # What was resized is elsewhere here.
    kept = base.tolist() if tuple(out.shape) == before else None
    return tuple(out.shape), str(out.dtype)[-5:], result.tolist(), result is out, kept


@pytest.mark.filterwarnings("ignore:.*resize", "ignore:torch.range is deprecated")
@pytest.mark.parametrize(("factory", "target"), list(itertools.product(FACTORIES, TARGETS)))
def test_out(factory, target):
    for dtype in DTYPES:
        expected = made(torch, factory, dtype, target)
        found = made(tp, factory, dtype, target)
        if isinstance(expected, tuple) and factory in ("rand", "randn", "normal", "randperm"):
            expected, found = expected[:3], found[:3]
        elif isinstance(expected, type):
            assert isinstance(found, type), (dtype, expected, found)
            continue
        assert found == expected, dtype


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_dtype_that_contradicts(factory):
    with pytest.raises(RuntimeError, match="does not match dtype of out"):
        FACTORIES[factory](tp, out=tp.empty(4), dtype=tp.float64)


@pytest.mark.parametrize("dtype", [tp.float16, tp.float32, tp.float64])
@pytest.mark.parametrize("factory", ["rand", "randn"])
def test_the_same_numbers_as_without(factory, dtype):
    make = getattr(tp, factory)
    tp.manual_seed(3)
    expected = make(50, dtype=dtype)
    tp.manual_seed(3)
    assert make(50, out=tp.empty(50, dtype=dtype)).equal(expected)
