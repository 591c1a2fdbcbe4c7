"""Writes of operands that are converted or broadcast take short ways, and come to what the op returns.

Over all pointwise ops of two tensors that have an in-place variant, and ``copy_``.
"""

from __future__ import annotations

import itertools
import math

import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.op_registry import Op, all_ops, get_op

DTYPES = (tp.bool, tp.uint8, tp.int64, tp.float16, tp.float32, tp.float64, tp.complex64)
SHAPES = (
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 3), (2, 1)),
    ((2, 3), ()),
    ((), ()),
    ((3,), (2, 3)),
)
BINARY = sorted(
    [op for op in all_ops() if op.pointwise and op.declared and op.arity == 2 and op.promotions],
    key=lambda op: op.name,
)
WRITTEN = [op for op in BINARY if hasattr(tp.Tensor, f"{op.name}_")]

pytestmark = pytest.mark.filterwarnings("ignore")


def operand(shape: tuple[int, ...], dtype: DType, start: int) -> tp.Tensor:
    """Return a tensor of a few small numbers."""
    numbers = [start + number % 3 for number in range(math.prod(shape))]
    return tp.tensor(numbers).reshape(shape).to(dtype)


def turned(tensor: tp.Tensor) -> tp.Tensor:
    """Return a view of the same numbers in another order of memory."""
    return tensor.mT.clone(memory_format=tp.contiguous_format).mT if tensor.ndim > 1 else tensor


@pytest.mark.parametrize("op", WRITTEN, ids=lambda op: op.name)
def test_what_is_written_is_what_the_op_returns(op: Op) -> None:
    written = 0
    for dtypes, shapes in itertools.product(itertools.product(DTYPES, repeat=2), SHAPES):
        a, b = (operand(shapes[place], dtypes[place], place + 1) for place in range(2))
        for target in (a.clone(), turned(a.clone())):
            before, version = target.tolist(), target._version
            try:
                getattr(target, f"{op.name}_")(b)
            except (RuntimeError, TypeError, NotImplementedError):
                assert target.tolist() == before
                continue
            expected = op.call(a, b).to(a.dtype)
            assert target._version == version + 1
            tp.testing.assert_close(
                target, expected.contiguous(), equal_nan=True, check_stride=False
            )
            written += 1
    assert written


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_are_converted_and_broadcast(dtype: DType) -> None:
    for other, shapes in itertools.product(DTYPES, SHAPES[:-1]):
        src = operand(shapes[1], other, 1)
        for target in (tp.zeros(shapes[0], dtype=dtype), turned(tp.zeros(shapes[0], dtype=dtype))):
            assert target.copy_(src) is target
            assert target._version == 1
            assert target.tolist() == src.to(dtype).expand(shapes[0]).tolist()
    with pytest.raises(RuntimeError, match="shape"):
        tp.zeros(3, dtype=dtype).copy_(tp.zeros(2, 3))


@pytest.mark.parametrize("name", ["copy_", "mul_", "add_"])
@pytest.mark.parametrize("shape", [(2, 3), (3,)])
def test_gradients_pass_through_a_conversion(name: str, shape: tuple[int, ...]) -> None:
    weight = operand(shape, tp.float32, 1).requires_grad_()
    for _ in range(3):
        weight.grad = None
        target = tp.ones(2, 3, dtype=tp.float64)
        getattr(target, name)(weight)
        assert target.requires_grad
        target.sum().backward()
        assert weight.grad is not None
        assert weight.grad.dtype is tp.float32
        assert weight.grad.tolist() == tp.full(shape, 6.0 / math.prod(shape)).tolist()


def test_a_leaf_is_not_written_to() -> None:
    leaf = tp.ones(3, requires_grad=True)
    for other in (tp.ones(3, dtype=tp.float64), tp.ones(1), tp.tensor(True)):
        with pytest.raises(RuntimeError, match="leaf"):
            leaf.copy_(other)
        with pytest.raises(RuntimeError, match="leaf"):
            leaf.mul_(other)


def test_expanded_memory_is_not_written_to() -> None:
    for op in ("copy_", "mul_"):
        with pytest.raises(RuntimeError, match="more than one element"):
            getattr(tp.ones(1).expand(3), op)(tp.ones(3, dtype=tp.float64))


def test_what_is_converted_counts_for_each_dtype() -> None:
    assert get_op("mul").promotions is not None
    whole = tp.tensor([2, 3])
    for other, wanted in ((tp.tensor([True, False]), [2, 0]), (tp.tensor(2), [4, 0])):
        assert whole.mul_(other).tolist() == wanted
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.mul_(tp.tensor([0.5, 0.5]))
