"""Direct calls of ops that have declared shapes: what does not fit is refused before a kernel sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import tensorplug as tp
import tensorplug.nn.functional
from tensorplug.core.dispatch.arguments import plain_arguments
from tensorplug.core.dispatch.declared_shapes import ShapeRule
from tensorplug.core.dispatch.op_registry import Op, all_ops, get_op
from tensorplug.testing import cases
from tensorplug.testing.records import Sample, all_records

DECLARED = sorted(op.name for op in all_ops() if isinstance(op.canonical, ShapeRule))
# What their bodies call checks its arguments, and no backend has a kernel for them.
DECOMPOSED = {
    "conv_tbc",
    "gumbel_softmax",
    "linear_cross_entropy",
    "multi_head_attention_forward",
    "one_hot",
}
# What may have any shape: alone, or broadcast.
FREE = {
    ("binary_cross_entropy_backward", "g"),
    ("binary_cross_entropy_backward", "weight"),
    ("native_dropout", "input"),
    ("relu6", "input"),
}
# What is the only tensor, or the only one whose dtype is not named: of any dtype.
LONE = {
    (name, get_op(name).names[0])
    for name in DECLARED
    if len(re.findall(r"\w\(", get_op(name).canonical.shapes)) == 1  # type: ignore[union-attr]
} | {("native_dropout_backward", "g"), ("max_pool_backward", "gradient")}


def samples() -> Iterator[tuple[Any, Sample]]:
    """Yield (op, sample) for the ops with declared shapes."""
    for record in all_records():
        if record.op in DECLARED:
            dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
            for sample in cases.samples_of(record, "cpu", dtype):
                yield get_op(record.op), sample


def others(op: Any, sample: Sample) -> Iterator[tuple[str, list[Any]]]:
    """Yield arguments of which one does not fit: of other rank, size or dtype, a number or a tensor."""
    shapes = {name for name, *_ in re.findall(r"(\w+)(?:\.\d+)?(?::\w+)?\(", op.canonical.shapes)}
    args = list(op.bind(sample.args, sample.kwargs))
    for place, (name, value) in enumerate(zip(op.names, args, strict=True)):
        wrong: list[Any] = []
        if isinstance(value, tp.Tensor):
            if name not in shapes:
                continue
            wrong = [3.0, tp.zeros(value.shape, dtype=tp.uint8 if value.ndim else tp.bool)]
            if (op.name, name) not in FREE:
                wrong += [tp.zeros((), dtype=value.dtype)] if value.ndim else []
                wrong += [tp.zeros((1, *value.shape), dtype=value.dtype)]
        elif isinstance(value, (tuple, list)) and isinstance(value[0], tp.Tensor):
            wrong = [value[:-1], [value[0], tp.zeros(()), *value[2:]], value[0]]
        elif isinstance(value, (tuple, list)):
            wrong = [1.5, tp.tensor(1.5), value[:-1], [-1] * len(value), [0.5] * len(value)]
        elif type(value) in (bool, int, float):
            wrong = ["", (1,)]
        for other in wrong:
            yield name, [*args[:place], other, *args[place + 1 :]]


def test_what_does_not_fit_is_refused() -> None:
    counted, taken = 0, []
    seen = set()
    for op, sample in samples():
        for name, args in others(op, sample):
            seen.add(op.name)
            counted += 1
            try:
                op.canonical(*plain_arguments(op, tuple(args), {})[0])
            except (TypeError, RuntimeError, ValueError, IndexError):
                continue
            if (op.name, name) not in LONE:
                taken.append(f"{op.name}({name}=): {args}")
    assert not taken, "\n".join(call[:200] for call in taken)
    assert len(seen) > 35
    assert counted > 1000


def test_every_op_of_networks_that_a_kernel_may_serve_checks_its_arguments() -> None:
    unchecked = {
        op.name
        for op in all_ops()
        if op.kind == "composite"
        and op.canonical is None
        and op.function.__module__.startswith("tensorplug.nn")
    }
    assert unchecked == DECOMPOSED


@pytest.mark.parametrize(
    ("shape", "size", "text"),
    [
        ((), (1,), "'x' must have shape (N, *S)"),
        ((2, 3), (1, 1), "'size' must have 1 items"),
        ((2, 3), (0,), "'size' must be 1 or more"),
        (None, (1,), "'x' must be Tensor, not NoneType"),
    ],
)
def test_messages(shape: Any, size: tuple[int, ...], text: str) -> None:
    rule = ShapeRule("x(N, *S), size[S]+")
    rule.op = Op("testing.shaped")
    rule.op.declaration = rule.op.function = shaped
    rule.op.names = ("x", "size")
    assert rule(tp.zeros(2, 3), [1])[1] == (1,)
    with pytest.raises((TypeError, RuntimeError), match=re.escape(text)):
        rule(None if shape is None else tp.zeros(shape), size)


def shaped(x: tp.Tensor, size: tuple[int, ...]) -> tp.Tensor:
    """Return the tensor."""
    del size
    return x
