"""Floats of eight bits, which no loop here knows, are what cpu_numpy makes of them; compiled, too."""

import pytest

import tensorplug as tp
from tensorplug.plugin import ALL_DTYPES

FLOAT8 = [
    tp.float8_e4m3fn,
    tp.float8_e5m2,
    tp.float8_e4m3fnuz,
    tp.float8_e5m2fnuz,
    tp.float8_e8m0fnu,
]
ENDS = [0.0, 1.0, 3.0, 100.0]


def in_bytes(tensor):
    return tensor.view(tp.uint8).tolist()


@pytest.mark.parametrize("target", FLOAT8, ids=str)
@pytest.mark.parametrize("source", [d for d in ALL_DTYPES if not d.is_complex], ids=str)
def test_conversions(source, target):
    x = tp.tensor(ENDS).to(source)
    with tp.prefer("cpu_numpy"):
        wanted = x.to(target)
    found = x.to(target)
    assert in_bytes(found) == in_bytes(wanted)
    assert found.to(source).tolist() == wanted.to(source).tolist()
    assert in_bytes(x.t().clone().to(dtype=target, copy=True)) == in_bytes(wanted)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_factories_and_copies(dtype):
    assert tp.ones(3, dtype=dtype).to(tp.float32).tolist() == [1, 1, 1]
    x = tp.tensor(ENDS).to(dtype)
    assert in_bytes(tp.empty_like(x).copy_(tp.tensor(ENDS))) == in_bytes(x)
    assert in_bytes(tp.cat([x, x])) == in_bytes(x) * 2


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_compiled_programs(dtype):
    def program(x):
        return (x * 2 + 1).to(dtype).to(tp.float32) * 3

    x = tp.tensor([0.5, 1.5, 7.5])
    compiled = tp.compile(program)
    for _ in range(4):
        assert compiled(x).tolist() == program(x).tolist()
