"""Random programs of views, writes in place, hooks and mixed dtypes: against torch, and without views.

A program is a list of instructions over registers. Each names registers and a number, from which its
dimensions and positions follow, so that any part of a program is a program: one that fails is cut down
until nothing can be left out. ``make fuzz`` runs more of them.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import view_instructions
from view_instructions import ERRORS, SHAPES, Instruction, along

import tensorplug as tp
from tensorplug import plugins
from tensorplug.autograd import derivative

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "150"))
SLICES = 5  # tests that share the programs


# --- instructions: functions of a tensor (and another), the library and a number -------------------


VIEWS: dict[str, Callable[..., Any]] = {
    **view_instructions.VIEWS,
    "permute": lambda x, p: x.permute(tuple(random.Random(p).sample(range(x.ndim), x.ndim))),
    "reshaped": lambda x, p: x.view(*x.shape[:-1], 1, *x.shape[-1:]),
}
PLAIN: dict[str, Callable[..., Any]] = {
    "add": lambda lib, x, y, p: x + y,
    "sub": lambda lib, x, y, p: x - 2 * y,
    "mul": lambda lib, x, y, p: x * y,
    "div": lambda lib, x, y, p: x / (y * y + 1),
    "sin": lambda lib, x, y, p: x.sin(),
    "tanh": lambda lib, x, y, p: x.tanh(),
    "exp": lambda lib, x, y, p: (-x * x).exp(),
    "relu": lambda lib, x, y, p: x.relu(),
    "clamp": lambda lib, x, y, p: x.clamp(-0.5, 0.7),
    "sum": lambda lib, x, y, p: x.sum(along(x, p)),
    "mean": lambda lib, x, y, p: x.double().mean(along(x, p), keepdim=True),
    "total": lambda lib, x, y, p: x.sum() * 0.1,
    "cumsum": lambda lib, x, y, p: x.cumsum(along(x, p)),
    "where": lambda lib, x, y, p: lib.where(x > 0, x, y),
    "matmul": lambda lib, x, y, p: x @ y * 0.3,
    "cat": lambda lib, x, y, p: lib.cat([x, y], along(x, p)),
    "stack": lambda lib, x, y, p: lib.stack([x, x * x], p % (x.ndim + 1)),
    "float": lambda lib, x, y, p: x.to(lib.float32, copy=True),
    "double": lambda lib, x, y, p: x.to(lib.float64, copy=True),
    "clone": lambda lib, x, y, p: x.clone(),
    "repeated": lambda lib, x, y, p: x.expand(2, *x.shape) * 0.5,
    "square": lambda lib, x, y, p: x.square(),
    "detached": lambda lib, x, y, p: x.detach().clone(),
}
# What is written, and the same without writing.
WRITES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add_": (lambda x, y, p: x.add_(y), lambda x, y, p: x + y),
    "mul_": (lambda x, y, p: x.mul_(y), lambda x, y, p: x * y),
    "sub_": (lambda x, y, p: x.sub_(y, alpha=2), lambda x, y, p: x - 2 * y),
    "half_": (lambda x, y, p: x.mul_(0.5), lambda x, y, p: x * 0.5),
    "sin_": (lambda x, y, p: x.sin_(), lambda x, y, p: x.sin()),
    "tanh_": (lambda x, y, p: x.tanh_(), lambda x, y, p: x.tanh()),
    "relu_": (lambda x, y, p: x.relu_(), lambda x, y, p: x.relu()),
    "copy_": (lambda x, y, p: x.copy_(y), lambda x, y, p: y + tp.zeros_like(x)),
    "fill_": (lambda x, y, p: x.fill_(0.3), lambda x, y, p: tp.full_like(x, 0.3)),
    "zero_": (lambda x, y, p: x.zero_(), lambda x, y, p: tp.zeros_like(x)),
    "clamp_": (lambda x, y, p: x.clamp_(-0.4, 0.6), lambda x, y, p: x.clamp(-0.4, 0.6)),
    "addcmul_": (lambda x, y, p: x.addcmul_(y, y), lambda x, y, p: x + y * y),
    "lerp_": (lambda x, y, p: x.lerp_(y, 0.3), lambda x, y, p: x + 0.3 * (y - x)),
    "masked_": (
        lambda x, y, p: x.masked_fill_(x > 0.2, -0.1),
        lambda x, y, p: x * (x <= 0.2) - 0.1 * (x > 0.2),
    ),
    "set": (lambda x, y, p: x.__setitem__(..., y), lambda x, y, p: y + tp.zeros_like(x)),
    "iadd": (lambda x, y, p: x.__iadd__(y), lambda x, y, p: x + y),
}
# Of torch's programs only: what needs no counterpart without views.
STATE = (
    "retain_grad",
    "hook",
    "hook_twice",
    "shared",
    "no_grad_half",
    "strided",
    "require",
    "frozen",
)
# Hooks of views see what flows through the view, which torch's way to write to views bypasses.
ON_BASES = ("retain_grad", "hook", "hook_twice", "no_grad_half")
REFERENCE = (*VIEWS, *VIEWS, *PLAIN, *WRITES, *WRITES)
EVERYTHING = (*REFERENCE, *STATE, *STATE)


def made(seed: int, names: tuple[str, ...]) -> list[Instruction]:
    """Return a program."""
    draw = random.Random(seed)
    count = draw.randint(3, 18)
    number = draw.randrange
    return [(draw.choice(names), number(1000), number(1000), number(1000)) for _ in range(count)]


def leaves_of(seed: int, lib: Any) -> list[Any]:
    """Return the leaves: two that require grad, and one of another dtype."""
    draw = random.Random(f"leaves {seed}")
    found = []
    for dtype in (lib.float64, lib.float64, draw.choice((lib.float32, lib.int64, lib.float64))):
        shape = draw.choice(SHAPES)
        numbers = np.array([draw.uniform(-2, 2) for _ in range(int(np.prod(shape)))]).reshape(shape)
        leaf = lib.tensor(numbers.tolist()).reshape(shape).to(dtype).clone()
        found.append(leaf.requires_grad_(len(found) < 2))
    return found


# --- with views and writes ---------------------------------------------------------------------------


@dataclass
class Run:
    """What a program does in one library."""

    values: list[Any] = field(default_factory=list)
    gradients: list[Any] = field(default_factory=list)
    trace: list[bool] = field(default_factory=list)  # which instructions were taken
    flags: list[Any] = field(default_factory=list)
    failed: str = ""  # in backward


def bare(value: Any) -> Any:
    """Return the elements as NumPy's."""
    return None if value is None else value.detach().numpy().copy()


def loss_of(lib: Any, registers: list[Any], seed: int) -> Any:
    """Return a number that depends on all that requires grad; in two of three programs on some of it.

    So there are leaves without influence: overwritten before they are read, read where nothing comes of
    it. What torch gives for them, zeros or None, depends on whether a path leads there.
    """
    draw = random.Random(f"loss {seed}")
    share = draw.choice((1.0, 0.5, 0.2))
    loss = lib.zeros((), dtype=lib.float64)
    for number, register in enumerate(registers):
        if draw.random() < share and register.requires_grad and register.numel():
            loss = loss + (register.double() * (1 + 0.1 * number)).cos().sum()
    return loss


def run(lib: Any, program: list[Instruction], seed: int, second: bool) -> Run:
    """Run a program, and differentiate all of its registers."""
    result = Run()
    leaves = leaves_of(seed, lib)
    registers = list(leaves)
    memory = list(range(len(leaves)))  # which registers share theirs
    seen: list[Any] = []
    retained: list[Any] = []
    for name, a, b, p in program:
        i, j = a % len(registers), b % len(registers)
        x, y = registers[i], registers[j]
        if name in ON_BASES and memory[i] != i:
            result.trace.append(False)
            continue
        try:
            new = step(lib, name, x, y.clone() if memory[i] == memory[j] else y, p, seen, retained)
        except ERRORS:
            result.trace.append(False)
            continue
        result.trace.append(True)
        if new is not None:
            registers.append(new)
            memory.append(
                memory[i] if name in VIEWS or name in ("shared", "strided") else len(memory)
            )
    result.values = [bare(register) for register in registers]
    result.flags = [(r.requires_grad, r.is_leaf, str(r.dtype).split(".")[-1]) for r in registers]
    loss = loss_of(lib, registers, seed)
    if not loss.requires_grad:
        return result
    try:
        if second:
            result.gradients = differentiated_twice(lib, loss, leaves[:2])
        else:
            loss.backward()
            result.gradients = [bare(t.grad) for t in (*leaves[:2], *retained)] + seen
    except ERRORS as error:
        result.failed = str(error)
    return result


def differentiated_twice(lib: Any, loss: Any, leaves: list[Any]) -> list[Any]:
    """Return first and second derivatives."""
    first = lib.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    second: Any = [None] * len(leaves)
    total = sum([(g * g).sum() for g in first if g is not None and g.requires_grad])
    if isinstance(total, lib.Tensor):
        second = lib.autograd.grad(total, leaves, allow_unused=True)
    return [bare(g) for g in (*first, *second)]


def step(lib: Any, name: str, x: Any, y: Any, p: int, seen: list[Any], retained: list[Any]) -> Any:
    """Run one instruction; return the new register, if there is one."""
    if name in VIEWS:
        return VIEWS[name](x, p)
    if name in PLAIN:
        return PLAIN[name](lib, x, y, p)
    if name in WRITES:  # torch lets integers require grad where they are written to
        WRITES[name][0](x, y if x.is_floating_point() else y.detach(), p)
    elif name == "require":
        return x.detach().clone().requires_grad_()
    elif name == "shared":
        return x.detach()
    elif name == "strided":
        # Of other memory than its own elements it depends on what was written which gradient arrives.
        return x.as_strided((x.numel(),), (1,)) if x.is_contiguous() else x.view(-1)
    elif name == "retain_grad":
        x.retain_grad()
        retained.append(x)
    elif name == "frozen":
        x.requires_grad_(x.requires_grad)
    elif name == "no_grad_half":
        with lib.no_grad():
            x.mul_(0.5)
    else:
        found: list[Any] = []
        factor = 1.0 + p % 3
        x.register_hook(
            lambda g: (found.append(bare(g)), g * factor if name == "hook_twice" else None)[1]
        )
        seen.append(found)
    return None


# --- without -----------------------------------------------------------------------------------------


def run_without(program: list[Instruction], trace: list[bool], seed: int) -> Run:
    """Run a program on flat memory that is never written to: each write makes new memory."""
    leaves = leaves_of(seed, tp)
    memories: list[Any] = [leaf.reshape(-1) for leaf in leaves]
    registers = [(n, positions(leaf.shape)) for n, leaf in enumerate(leaves)]

    def read(register: Any) -> Any:
        memory, places = register
        return memories[memory].index_select(0, places.reshape(-1)).reshape(tuple(places.shape))

    for (name, a, b, p), taken in zip(program, trace, strict=True):
        if not taken:
            continue
        memory, places = target = registers[a % len(registers)]
        other = read(registers[b % len(registers)])
        if name in VIEWS:
            registers.append((memory, VIEWS[name](places, p).clone()))
        elif name in PLAIN:
            result = PLAIN[name](tp, read(target), other, p)
            registers.append((len(memories), positions(result.shape)))
            memories.append(result.reshape(-1))
        else:
            dtype = memories[memory].dtype
            value = WRITES[name][1](read(target), other, p).to(dtype)
            while value.ndim > places.ndim:  # as x[...] = y does
                value = value.squeeze(0)
            value = value.expand(tuple(places.shape))
            flat = places.reshape(-1)
            memories[memory] = memories[memory].scatter(0, flat, value.reshape(-1))
    tensors = [read(register) for register in registers]
    result = Run([bare(tensor) for tensor in tensors])
    loss = loss_of(tp, tensors, seed)
    if loss.requires_grad:
        result.gradients = differentiated_twice(tp, loss, leaves[:2])
    return result


def positions(shape: Any) -> Any:
    """Return the positions of a new tensor's elements in its memory."""
    return tp.arange(int(np.prod(shape))).reshape(tuple(shape))


# --- comparison, and what is left of a program that fails ----------------------------------------------


def close(ours: Any, theirs: Any) -> bool:
    """Compare results; no gradient is as good as one without elements."""
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if ours is None or theirs is None:
        some = theirs if ours is None else ours
        return some is None or not some.size
    tolerance = 2e-3 if np.float32 in (ours.dtype, theirs.dtype) else 1e-5
    return ours.shape == theirs.shape and np.allclose(
        ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True
    )


def differs_from_torch(torch: Any, program: list[Instruction], seed: int) -> str:
    """Return in what a program's results differ from torch's."""
    for second in (False, True):
        ours, theirs = (run(lib, program, seed, second) for lib in (tp, torch))
        for (name, *_), mine, other in zip(program, ours.trace, theirs.trace, strict=True):
            if mine and not other and name in WRITES:
                return (
                    ""  # torch refuses to write to some views made before their base required grad
                )
            if mine != other and name in ("view", "reshaped", "strided"):
                return ""  # results of other ops than pointwise ones lie as kernels make them
            if other and name == "matmul" and not mine:
                return ""  # torch takes two dtypes where nothing is multiplied
            if mine != other:
                return f"{name} taken: {mine}, by torch: {other}"
        if ours.flags != theirs.flags:
            return f"flags: {ours.flags}, torch {theirs.flags}"
        if not all(map(close, ours.values, theirs.values)):
            return f"values: {ours.values}, torch {theirs.values}"
        if theirs.failed:
            continue  # a saved tensor was written to; ours may save others
        if "MatmulBackward" in ours.failed:
            continue  # torch's matmul saves copies of some
        if ours.failed:
            return f"backward: {ours.failed}"
        if not all(map(close, ours.gradients, theirs.gradients)):
            return f"gradients ({second=}): {ours.gradients}, torch {theirs.gradients}"
    return ""


def differs_without_views(program: list[Instruction], seed: int) -> str:
    """Return in what a program's results differ from those without views and writes."""
    ours = run(tp, program, seed, True)
    wanted = run_without(program, ours.trace, seed)
    if not all(map(close, ours.values, wanted.values)):
        return f"values: {ours.values}, without views {wanted.values}"
    if ours.failed:
        return ""
    # Zeros that a write leaves have no second derivative; those that scatter() leaves have zeros.
    pairs = zip(ours.gradients[2:], wanted.gradients[2:], strict=True)
    alike = all(close(mine, other) or (mine is None and not other.any()) for mine, other in pairs)
    if alike and all(map(close, ours.gradients[:2], wanted.gradients[:2])):
        return ""
    return f"gradients: {ours.gradients}, without views {wanted.gradients}"


def check(
    program: list[Instruction], seed: int, differs: Callable[[list[Instruction]], str]
) -> None:
    """Fail with what is left of a program that differs when nothing more can be left out."""
    if not differs(program):
        return
    n = 0
    while n < len(program):
        shorter = program[:n] + program[n + 1 :]
        if differs(shorter):
            program, n = shorter, 0
        else:
            n += 1
    pytest.fail(f"seed {seed}: {program}\n{differs(program)}")


@pytest.mark.parametrize("part", range(SLICES))
def test_against_torch(part: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    for seed in range(part, COUNT, SLICES):
        program = made(seed, EVERYTHING)
        check(program, seed, functools.partial(differs_from_torch, torch, seed=seed))


@pytest.mark.parametrize("part", range(SLICES))
def test_without_views_and_writes(part: int) -> None:
    for seed in range(part, COUNT, SLICES):
        program = made(seed, REFERENCE)
        check(program, seed, functools.partial(differs_without_views, seed=seed))


class Planted:
    """A plugin for which what `copy_` and its kin write over has no gradient, rather than zeros."""

    name = "planted"

    @plugins.hookimpl
    def tensorplug_derivatives(self) -> list[Any]:
        return [derivative("copy", input=None, src=lambda g: g, priority=1)]


def test_a_leaf_that_is_written_over_has_zeros() -> None:
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")

    def found() -> bool:
        programs = [(made(seed, EVERYTHING), seed) for seed in range(90, 100)]
        return any(differs_from_torch(torch, program, seed) for program, seed in programs)

    assert not found()
    plugin = Planted()
    plugins.register(plugin)
    try:
        assert found()
    finally:
        plugins.unregister(plugin.name)
