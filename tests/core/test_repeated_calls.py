"""Pointwise calls made again take shorter ways, and come to what the rule says of the first one.

What stands for the rule is the same call with all caches cleared: the first one always goes through it.
"""

from __future__ import annotations

import itertools
import math

import pytest
from scalar_cases import described, outcome

import tensorplug as tp
from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.call_cache import clear_call_caches
from tensorplug.core.dispatch.op_registry import Op, all_ops, get_op

DTYPES = (tp.bool, tp.uint8, tp.int64, tp.bfloat16, tp.float32, tp.float64, tp.complex64)
SHAPES = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 3), ()), ((), (2, 3)), ((2, 3), (2,)))
POINTWISE = sorted((op for op in all_ops() if op.pointwise and op.declared), key=lambda op: op.name)
BINARY = [op for op in POINTWISE if op.arity == 2]

pytestmark = pytest.mark.filterwarnings("ignore")


def operand(shape: tuple[int, ...], dtype: DType, start: int) -> tp.Tensor:
    """Return a tensor of a few small numbers."""
    numbers = [start + number % 3 for number in range(math.prod(shape))]
    return tp.tensor(numbers).reshape(shape).to(dtype)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_operands_of_two_dtypes(op: Op) -> None:
    for dtypes, shapes in itertools.product(itertools.permutations(DTYPES, 2), SHAPES):
        a, b = (operand(shapes[place], dtypes[place], place) for place in range(2))
        clear_call_caches()
        expected = outcome(lambda a=a, b=b: op.call(a, b))
        for _ in range(4):
            assert outcome(lambda a=a, b=b: op.call(a, b)) == expected, (dtypes, shapes)


@pytest.mark.usefixtures("nothing_looks_on")
def test_a_conversion_is_a_step_of_what_is_replayed() -> None:
    clear_call_caches()
    numbers, places = tp.ones(3), tp.arange(3)
    for _ in range(4):
        tp.mul(numbers, places)
    replays = get_op("mul").promotions.replays
    (replay,) = replays.values()
    assert len(replay.program.steps) == 2


def test_a_conversion_is_recorded() -> None:
    weight = tp.tensor([1.0, 2.0], requires_grad=True)
    counts = tp.tensor([3, 4])
    for _ in range(5):
        weight.grad = None
        product = weight * counts
        product.sum().backward()
        assert weight.grad is not None
        assert weight.grad.tolist() == [3, 4]
        assert product.grad_fn.name() == "MulBackward0"
        tp.mul(counts, tp.ones(2))  # not recorded in between


@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_results_in_memory_that_is_there(op: Op) -> None:
    for dtype, shape in itertools.product((tp.int64, tp.float32), ((2, 3), ())):
        operands = [operand(shape, dtype, start) for start in range(op.arity)]
        expected = outcome(lambda operands=operands: op.call(*operands))
        if isinstance(expected, str):  # an error
            continue
        memory = tp.empty_like(op.call(*operands))
        for _ in range(3):
            memory.zero_()
            version = memory._version
            assert op.call(*operands, out=memory) is memory
            assert memory._version == version + 1
            assert described(memory) == expected


def test_writing_what_a_view_shows() -> None:
    """A view asks its base whether it requires grad; one that does not is written as any other."""
    base = tp.tensor([1.0, 2.0])
    view, total = base[:], tp.zeros(2)
    for count in range(1, 4):
        total.add_(view)
        assert total.tolist() == [count, 2 * count]
    base.requires_grad_()
    total.add_(base[:])
    assert total.requires_grad
    total.sum().backward()
    assert base.grad is not None
    assert base.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="out="):
        get_op("add").call(view, base[:], out=tp.zeros(2))
