"""Random programs of conjugates, views and writes in place: what is seen through them is as with torch.

``conj`` returns memory of its own, and writes are carried over; ``make fuzz`` runs more programs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import plugins
from tensorplug.plugin import KernelTable, derivative

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "250"))
SLICES = 2

VIEWS = {
    "conj": lambda x: x.conj(),
    "mH": lambda x: x.mH,
    "adjoint": lambda x: x.adjoint(),
    "transpose": lambda x: x.transpose(0, 1),
    "row": lambda x: x[1:],
    "column": lambda x: x[:, :1],
    "view": lambda x: x.view(x.shape),
    "resolve": lambda x: x.resolve_conj(),
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "double": lambda x: x * (2 + 1j),
}
WRITES = {
    "mul_": lambda x, y: x.mul_(1.5 - 0.5j),
    "add_": lambda x, y: x.add_(y),
    "set": lambda x, y: x.__setitem__((0, 0), 3 + 2j),
    "row": lambda x, y: x[0].mul_(2j),
    "fill_": lambda x, y: x.fill_(1 + 1j),
    "copy_": lambda x, y: x.copy_(y),
    "iadd": lambda x, y: x.__iadd__(1j),
    "conj_physical_": lambda x, y: x.conj_physical_(),
    "masked_fill_": lambda x, y: x.masked_fill_(x.real > 1, 2j),
    "cumsum_": lambda x, y: x.cumsum_(0),
    "index_add_": lambda x, y: x[:, 0].mul_(y[0, 0]),
}


def program(seed: int) -> list[tuple[str, str, int, int]]:
    """Return instructions: a kind, a name, and which tensors they take."""
    source = random.Random(seed)
    steps = []
    for number in range(source.randrange(3, 10)):
        kind = "view" if not number or source.random() < 0.5 else "write"
        name = source.choice(list(VIEWS if kind == "view" else WRITES))
        steps.append((kind, name, source.randrange(1000), source.randrange(1000)))
    return steps


def run(lib: Any, seed: int) -> Any:
    """Return the values of all tensors, whether they are conjugates, and the leaf's gradient."""
    tracked = bool(seed % 3)
    start = [[1 + 2j, 3 - 1j, 0.5j], [2.0, 1 - 1j, -1 + 1j], [4j, 1, 2 - 2j]]
    leaf = lib.tensor(start, dtype=lib.complex128, requires_grad=tracked)
    tensors = [leaf * 1]
    refused = []
    for step, (kind, name, first, second) in enumerate(program(seed)):
        x, y = tensors[first % len(tensors)], tensors[second % len(tensors)]
        try:
            if kind == "view":
                tensors.append(VIEWS[name](x))
            else:
                WRITES[name](x, (y.detach() if second % 2 else y).clone())
        except RuntimeError:
            refused.append(step)
    values = [x.detach().resolve_conj().numpy().copy() for x in tensors]
    found: list[Any] = [refused, [x.is_conj() for x in tensors], [x.requires_grad for x in tensors]]
    total = sum([(x * (n + 1)).sum().abs() for n, x in enumerate(tensors)])
    if total.requires_grad:
        try:
            total.backward()
        except RuntimeError as error:
            return found, values, str(error)
        values.append(leaf.grad.numpy().copy())
    return found, values, ""


def difference(torch: Any, seed: int) -> tuple[str, bool]:
    """Return what is not as with torch, or an empty text, and whether a gradient was compared."""
    (said, values, error), (found, ours, refused) = run(torch, seed), run(tp, seed)
    if found != said:
        return f"{found}, {said} in torch", False
    for value, wanted in zip(ours, values, strict=False):
        if not np.allclose(value, wanted, rtol=1e-9, atol=1e-9):
            return f"{value}, {wanted} in torch", False
    if any(text and "inplace operation" not in text for text in (error, refused)):
        return f"{refused or 'no error'}, {error or 'no error'} in torch", False
    if error:
        return "", False
    if refused or len(ours) != len(values):
        return f"no gradient: {refused}", False
    return "", True


def faults(torch: Any, seeds: Iterable[int]) -> tuple[list[str], int]:
    """Return what is wrong in programs, and how many were compared up to the gradient."""
    wrong, computed = [], 0
    for seed in seeds:
        text, compared = difference(torch, seed)
        computed += compared
        wrong += [f"{seed}: {program(seed)}: {text}"] if text else []
    return wrong, computed


@pytest.mark.parametrize("part", range(SLICES))
def test_programs(part: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    wrong, computed = faults(torch, range(part, COUNT, SLICES))
    assert not wrong, "\n".join(wrong)
    assert computed > COUNT // SLICES // 3


class WrongDerivative:
    """A plugin for which the gradient passes by a conjugate as it is."""

    name = "planted"

    @plugins.hookimpl
    def tensorplug_derivatives(self) -> list[Any]:
        return [derivative("conj_physical", input=lambda g: g, priority=1)]


class WrongKernel:
    """A plugin that turns the sign of the real part, rather than that of the imaginary one."""

    name = "planted"

    @plugins.hookimpl
    def tensorplug_kernels(self) -> KernelTable:
        table = KernelTable("cpu", priority=1000)
        table.add("conj_physical", lambda array: -array.conj(), dtypes=[tp.complex128])
        return table


@pytest.mark.parametrize("plugin", [WrongDerivative, WrongKernel])
def test_planted_faults_are_found(plugin: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    assert faults(torch, range(20))[0] == []
    plugins.register(plugin())
    try:
        assert faults(torch, range(20))[0]
    finally:
        plugins.unregister("planted")


def test_writes_that_are_carried_over_are_not_captured() -> None:
    def program(z: Any) -> Any:
        z = z * 1
        shown = z.conj()
        shown[0] = 5 + 1j
        z.mul_(2)
        return z, shown

    compiled = tp.compile(program)
    z = tp.ones(3, dtype=tp.complex64)
    for _ in range(3):
        for found, wanted in zip(compiled(z), program(z), strict=True):
            assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("twice", ["conj", "mH", "row", "transpose"])
def test_a_conjugate_that_begins_a_graph_gets_the_gradient(twice, outer):
    """What it shows has no part in the graph, even if it requires a gradient of its own."""
    torch = pytest.importorskip("torch", reason="torch is the reference")
    found = []
    for library in (tp, torch):
        x = library.tensor([[1 + 2j, 3j], [2 - 1j, 4 + 0j]]).requires_grad_(outer)
        with library.no_grad():
            y = x.conj()
        y = y.requires_grad_()
        z = VIEWS[twice](y).conj()
        (z * (2 - 1j)).real.sum().backward()
        found.append((z.detach().resolve_conj().tolist(), y.grad.resolve_conj().tolist()))
        assert x.grad is None
    assert found[0] == found[1]
