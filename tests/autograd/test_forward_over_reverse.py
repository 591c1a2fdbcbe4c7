"""Forward mode through gradients: by an argument that is not recorded, of gradients by another one."""

from __future__ import annotations

import itertools

import pytest

import tensorplug as tp
import tensorplug.autograd.forward_ad as fwAD
from tensorplug.autograd import grad
from tensorplug.core.device.dtypes import float64
from tensorplug.core.ops.distances import minkowski_dist
from tensorplug.testing import making
from tensorplug.testing.cases import gradient_cases
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

RECORDS = [
    pytest.param(record, id=record.op)
    for record in all_records()
    if record.gradient and float64 in record.dtypes
]


def numbers(*shape):
    return making.make_tensor(*shape, dtype=float64, low=-1, high=1)


def gradient(function, points, position, seeds, *, create_graph=False):
    """Return the gradient of the outputs, times seeds that are made if there are none, by one point."""
    outputs = function(*points)
    if not seeds:
        seeds = [numbers(*out.shape).to(out.dtype) for out in outputs]
    live = [(out, seed) for out, seed in zip(outputs, seeds, strict=True) if out.requires_grad]
    if not live:
        return None, seeds
    found = grad(
        *([pair[0] for pair in live], points[position], [pair[1] for pair in live]),
        allow_unused=True,
        create_graph=create_graph,
    )
    return found[0], seeds


@pytest.mark.parametrize("record", RECORDS)
def test_is_the_second_derivative(record):
    """Compare d (u . dy/dx_i) / dx_j along v by forward mode and by a second backward pass."""
    cases = [
        case for case in gradient_cases(record, "cpu", float64, ("contiguous",)) if len(case[3]) > 1
    ]
    for sample, _, function, points in cases[:2]:
        for i, j in itertools.permutations(range(min(len(points), 3)), 2):
            slope, seeds = gradient(function, points, i, [], create_graph=True)
            if slope is None or not slope.requires_grad:
                continue
            u, v = numbers(*slope.shape).to(slope.dtype), numbers(*points[j].shape)
            try:
                second = grad(slope, points[j], u, allow_unused=True)[0]
            except (NotImplementedError, RuntimeError):  # has none
                continue
            with fwAD.dual_level():
                duals = [point.detach() for point in points]
                duals[i].requires_grad_()
                duals[j] = fwAD.make_dual(duals[j], v)
                again, _ = gradient(function, duals, i, seeds)
                tangent = fwAD.unpack_dual(again).tangent
            forward = 0.0 if tangent is None else (u * tangent).sum().item()
            reverse = 0.0 if second is None else (second * v).sum().item()
            close = abs(forward - reverse) <= 1e-7 * (1 + abs(reverse))
            assert close or (forward != forward and reverse != reverse), (sample, i, j)


#: Ops whose rule makes views of their arguments, which their nodes save.
EXPANDED = {
    "minkowski_dist": lambda x, y: minkowski_dist(x.expand(2, 3, 2), y, 3.0),
    "cdist": lambda x, y: tp.cdist(x, y, 1.5),
    "cdist of batches": lambda x, y: tp.cdist(x, y[None], 3.0),
    "cdist of products": lambda x, y: tp.cdist(x, y, 2.0, "use_mm_for_euclid_dist"),
    "solve": lambda x, y: tp.linalg.solve(
        y[:2] + 3 * tp.eye(2, dtype=float64), x.mT.expand(2, 2, 3)
    ),
    "cholesky_solve": lambda x, y: tp.cholesky_solve(
        x.mT.expand(2, 2, 3), y[:2] + 3 * tp.eye(2, dtype=float64)
    ),
}


@pytest.mark.parametrize("kind", ["itself", "view", "result"])
@pytest.mark.parametrize("name", EXPANDED)
def test_what_a_rule_makes_of_a_dual_argument_keeps_its_tangent(name, kind):
    x, y, step = numbers(3, 2), numbers(4, 2) + 2, numbers(4, 2)
    prepare = {"itself": lambda y: y, "view": lambda y: y.t().t(), "result": lambda y: y * 1}[kind]

    def slope(y):
        return tp.func.grad(lambda x: (EXPANDED[name](x, prepare(y)) ** 2).sum())(x)

    expected = (slope(y + 1e-5 * step) - slope(y - 1e-5 * step)) / 2e-5
    assert tp.allclose(tp.func.jvp(slope, (y,), (step,))[1], expected, 1e-5, 1e-6)
