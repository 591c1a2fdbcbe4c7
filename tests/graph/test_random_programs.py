"""Random programs, compiled and as they are: views, writes, random numbers, dtypes, sizes of 0, state.

A program is a list of instructions over registers: its arguments, a tensor of its own and what it made. What
raises is left out of it. Everything is compared that its caller can see: results, their layout, which share
memory, what was written to arguments and state, the numbers drawn afterwards, gradients.

By default 60 programs; with TENSORPLUG_FUZZ in the environment as many as that says.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
import view_instructions
from view_instructions import ERRORS, SHAPES, Instruction, along

import tensorplug as tp

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "60"))
PARTS = 4


VIEWS: dict[str, Callable[..., Any]] = {
    **view_instructions.VIEWS,
    "reshape": lambda x, p: x.reshape(-1),
    "contiguous": lambda x, p: x.contiguous(),
    "expand": lambda x, p: x.expand(2, *x.shape),
    "chunk": lambda x, p: x.chunk(2, along(x, p))[-1],
    "unbind": lambda x, p: x.unbind(along(x, p))[0],
    "split": lambda x, p: x.split(1, along(x, p))[p % 2],
    "detach": lambda x, p: x.detach(),
    "same": lambda x, p: x.to(x.dtype),
    "data": lambda x, p: x.data,
    "alias": lambda x, p: x.view_as(x),
    "mT": lambda x, p: x.mT,
}
PLAIN: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, p: x + y,
    "sub": lambda x, y, p: x - 2 * y,
    "mul": lambda x, y, p: x * y,
    "div": lambda x, y, p: x / (y * y + 1),
    "tanh": lambda x, y, p: x.tanh(),
    "relu": lambda x, y, p: x.relu(),
    "sum": lambda x, y, p: x.sum(along(x, p)),
    "mean": lambda x, y, p: x.double().mean(along(x, p), keepdim=True),
    "max": lambda x, y, p: x.max(along(x, p)).values,
    "cumsum": lambda x, y, p: x.cumsum(along(x, p)),
    "where": lambda x, y, p: tp.where(x > 0, x, y),
    "matmul": lambda x, y, p: x @ y * 0.3,
    "cat": lambda x, y, p: tp.cat([x, y], along(x, p)),
    "stack": lambda x, y, p: tp.stack([x, x * x], p % (x.ndim + 1)),
    "float": lambda x, y, p: x.float(),
    "double": lambda x, y, p: x.double(),
    "long": lambda x, y, p: x.long(),
    "clone": lambda x, y, p: x.clone(),
    "twice": lambda x, y, p: (x + 1) * (x + 1),
    "zeros": lambda x, y, p: x.new_zeros(x.shape),
    "arange": lambda x, y, p: tp.arange(float(x.numel())).view(x.shape),
    "constant": lambda x, y, p: tp.tensor([1.5, -2.0, 0.5]) * x,
    "softmax": lambda x, y, p: x.softmax(along(x, p)),
    "take": lambda x, y, p: x[tp.tensor([0, 0])],
    "masked": lambda x, y, p: x * (x > 0.1),
    "no_grad": lambda x, y, p: tp.no_grad()(lambda: x * 3 + y)(),
    "rand": lambda x, y, p: x + tp.rand(x.shape),
    "randn_like": lambda x, y, p: x * tp.randn_like(x),
    "dropout": lambda x, y, p: tp.nn.functional.dropout(x, 0.4),
    "randint": lambda x, y, p: x * tp.randint(0, 5, x.shape),
    "bernoulli": lambda x, y, p: tp.bernoulli(x.sigmoid()),
    "unused": lambda x, y, p: (tp.rand(3), x + 0)[1],
    "size": lambda x, y, p: x * x.shape[along(x, p)] + x.numel(),
    "stride": lambda x, y, p: x + sum(x.stride()),
    "item": lambda x, y, p: y * (1.0 if x.sum().item() > 1e9 else 0.5),
}
WRITES: dict[str, Callable[..., Any]] = {
    "add_": lambda x, y, p: x.add_(y),
    "mul_": lambda x, y, p: x.mul_(y),
    "sin_": lambda x, y, p: x.sin_(),
    "copy_": lambda x, y, p: x.copy_(y),
    "fill_": lambda x, y, p: x.fill_(0.3),
    "zero_": lambda x, y, p: x.zero_(),
    "clamp_": lambda x, y, p: x.clamp_(-0.4, 0.6),
    "addcmul_": lambda x, y, p: x.addcmul_(y, y),
    "masked_": lambda x, y, p: x.masked_fill_(x > 0.2, -0.1),
    "set": lambda x, y, p: x.__setitem__(p % 2, 0.7),
    "set_many": lambda x, y, p: x.__setitem__(tp.tensor([0]), 0.9),
    "set_mask": lambda x, y, p: x.__setitem__(x > 0, -0.2),
    "put": lambda x, y, p: x.index_add_(0, tp.tensor([0, 0]), x[:1].repeat(2, *[1] * (x.ndim - 1))),
    "uniform_": lambda x, y, p: x.uniform_(),
    "normal_": lambda x, y, p: x.normal_(),
    "out": lambda x, y, p: tp.mul(y, 2, out=x),
    "no_grad_": lambda x, y, p: tp.no_grad()(lambda: x.mul_(2))(),
    "t_": lambda x, y, p: x.t_(),
    "unsqueeze_": lambda x, y, p: x.unsqueeze_(0),
    "data_": lambda x, y, p: x.data.mul_(1.5),
    "detach_": lambda x, y, p: x.detach_(),
}
# What no graph holds in most places.
WILD = (
    "data",
    "item",
    "stride",
    "out",
    "no_grad_",
    "t_",
    "unsqueeze_",
    "data_",
    "detach_",
    "no_grad",
)
NAMES = (*VIEWS, *PLAIN, *WRITES, *WRITES)
TAME = [name for name in NAMES if name not in WILD]


def step(name: str, x: Any, y: Any, p: int) -> Any:
    """Run an instruction; return what it makes, None if it only writes."""
    if name in VIEWS:
        return VIEWS[name](x, p)
    if name in PLAIN:
        return PLAIN[name](x, y, p)
    WRITES[name](x, y, p)
    return None


def program(
    instructions: list[Instruction],
    state: Any,
    how: tuple[int, bool, bool],
    skipped: set[int] | None,
) -> Any:
    """Return a function of tensors; with `skipped` it notes there what raises, else it leaves that out."""
    kept, copied, apart = how

    def function(*args: Any) -> Any:
        registers = [*args, state]
        if copied:  # what is returned then shows no argument's memory
            registers = [register * 1 for register in registers]
        for number, (name, a, b, p) in enumerate(instructions):
            x, y = registers[a % len(registers)], registers[b % len(registers)]
            if skipped is None:
                new = step(name, x, y, p)
            else:
                try:
                    new = step(name, x, y, p)
                except ERRORS:
                    skipped.add(number)
                    continue
            if new is not None:
                registers.append(new)
        return tuple([r.clone() for r in registers[-kept:]] if apart else registers[-kept:])

    return function


def given(shapes: list[Any], seed: int) -> tuple[list[Any], list[Any]]:
    """Return arguments, of any layout and dtype, and the leaves that they are made of."""
    generator = tp.Generator().manual_seed(seed)
    found: list[Any] = []
    leaves: list[Any] = []
    for shape, how in shapes:
        x = tp.randn(shape, generator=generator)
        if how == "double":
            x = x.double()
        elif how == "long":
            x = (x * 3).long()
        elif how == "strided":
            x = tp.randn((*shape, 2), generator=generator)[..., 0]
        elif how == "transposed" and x.ndim > 1:
            x = tp.randn(shape[::-1], generator=generator).permute(*reversed(range(len(shape))))
        elif how == "grad":
            x.requires_grad_()
        elif how == "made":
            x = x.requires_grad_()
            leaves.append(x)
            x = x * 1
        found.append(x)
        if how == "grad":
            leaves.append(x)
    return found, leaves


def facts(tensors: Any) -> list[Any]:
    """Return what can be seen of tensors."""
    seen: list[Any] = []
    for number, t in enumerate(tensors):
        t = t if isinstance(t, tp.Tensor) else tp.tensor(t)
        memory = t.untyped_storage().data_ptr() if t.numel() else 0
        first = next(
            (k for k, o in enumerate(tensors[:number])
             if memory and o.numel() and o.untyped_storage().data_ptr() == memory), number,
        )  # fmt: skip
        seen.append((t.dtype, tuple(t.shape), t.requires_grad, t.is_leaf, first,
                     t.detach().clone().numpy().tobytes()))  # fmt: skip
    return seen


def observed(
    function: Any, given: tuple[list[Any], list[Any]], state: Any, seed: int, ordered: bool
) -> tuple[list[Any], list[Any]]:
    """Return what a call shows, strides if `ordered`, and gradients."""
    tp.manual_seed(seed)
    arguments, leaves = given
    results = function(*arguments)
    tensors = [*arguments, state, *results]
    seen: list[Any] = [*facts(tensors), tp.rand(2).tolist()]
    if ordered:
        seen += [t.stride() for t in results if 1 not in t.shape and t.numel()]
    seen += [[result is other for other in arguments] for result in results]
    loss: Any = 0.0
    for number, t in enumerate(results):
        if t.requires_grad and t.numel():
            loss = loss + (t.double() * (1 + 0.1 * number)).cos().sum()
    if isinstance(loss, float):
        return seen, []
    sources = [t for t in [*leaves, state] if t.requires_grad and t.is_leaf]
    try:
        found = tp.autograd.grad(loss, sources, allow_unused=True)
    except RuntimeError as error:
        return seen, [str(error)[:40]]
    return seen, list(found)


def compare(seed: int, wrap: Callable[[Any], Any] = tp.compile) -> str:
    """Return how many calls ran as graphs; "" if they are alike, else what is not."""
    draw = random.Random(seed)
    hows = ["", "", "grad", "grad", "made", "double", "long", "strided", "transposed"]
    shape = draw.choice(SHAPES)
    shapes = [
        (draw.choice([shape, shape, draw.choice(SHAPES)]), draw.choice(hows)) for _ in range(2)
    ]
    names = NAMES if draw.random() < 0.3 else TAME
    instructions = [
        (draw.choice(names), draw.randrange(1000), draw.randrange(1000), draw.randrange(1000))
        for _ in range(draw.randint(3, 14))
    ]
    kept = draw.randint(1, 3), draw.random() < 0.7, draw.random() < 0.5
    wanted = draw.random() < 0.3
    states = [tp.full((3,), 0.25, requires_grad=wanted) for _ in range(3)]
    skipped: set[int] = set()
    with tp.random.fork_rng():
        program(instructions, states[2], kept, skipped)(*given(shapes, 0)[0])
    taken = [i for n, i in enumerate(instructions) if n not in skipped]
    # What is written keeps its numbers, not its order in memory.
    ordered = not any([name in WRITES for name, *_ in taken])
    plain = program(taken, states[0], kept, None)
    compiled = wrap(program(taken, states[1], kept, None))
    for call in range(4):
        modes = [tp.enable_grad, tp.enable_grad, tp.enable_grad, tp.no_grad]
        outcome = []
        for function, state in ((plain, states[0]), (compiled, states[1])):
            with modes[call]():
                try:
                    outcome.append(observed(function, given(shapes, call), state, call, ordered))
                except ERRORS as error:
                    outcome.append((type(error).__name__, []))
        (a, ga), (b, gb) = outcome
        if a != b:
            return f"{seed} call {call} {shapes} {taken} {kept}:\n{a}\n{b}"
        if [*map(type, ga)] == [str]:
            continue  # what is saved was written: a graph writes nothing
        if len(ga) != len(gb) or any(
            [(x is None) != (y is None) for x, y in zip(ga, gb, strict=True)]
        ):
            return f"{seed} call {call} {shapes} {taken} {kept}: gradients {ga} {gb}"
        for x, y in zip(ga, gb, strict=True):
            if x is not None:
                try:
                    tp.testing.assert_close(x, y, rtol=1e-5, atol=1e-6, equal_nan=True)
                except AssertionError as error:
                    return f"{seed} call {call} {shapes} {taken} {kept}: {error}"
    RAN.append(compiled.explain())
    return ""


RAN: list[Any] = []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was resized:UserWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part: int) -> None:
    RAN.clear()
    for seed in range(part, COUNT, PARTS):
        assert not compare(seed)
    assert sum([found.calls for found in RAN]) > len(RAN)
