"""Forward mode: against reverse mode over all records, and by hand against torch."""

from __future__ import annotations

import pytest

import tensorplug as tp
import tensorplug.autograd.forward_ad as fwAD
from tensorplug.autograd import grad
from tensorplug.autograd.engine import derivatives
from tensorplug.autograd.forward import tangents
from tensorplug.core import plugins
from tensorplug.core.device.dtypes import complex128, float64
from tensorplug.core.errors import RegistrationError
from tensorplug.testing import making
from tensorplug.testing.cases import gradient_cases
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for record in all_records()
    if record.gradient
    for dtype in (float64, complex128)
    if dtype in record.dtypes
]

# The tangent of an empty mean is 0 / 0, its gradient has no elements.
_EMPTY = {"mean", "nanmean"}


def inner(a, b):
    """Return the real part of the inner product."""
    a, b = a.detach(), b.detach()
    return complex((a.conj() * b).sum().item()).real if a.numel() else 0.0


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_is_the_adjoint_of_reverse_mode(record, dtype):
    for sample, _, function, points in gradient_cases(record, "cpu", dtype, ("contiguous",)):
        outputs = function(*points)
        live = [out for out in outputs if out.requires_grad]
        if not live or (record.op in _EMPTY and not points[0].numel()):
            continue
        seeds = [making.make_tensor(*o.shape, dtype=o.dtype, low=-1, high=1) for o in live]
        directions = [making.make_tensor(*p.shape, dtype=p.dtype, low=-1, high=1) for p in points]
        gradients = grad(live, points, seeds, allow_unused=True)
        reverse = sum(
            inner(g, t) for g, t in zip(gradients, directions, strict=True) if g is not None
        )
        with fwAD.dual_level():
            duals = [fwAD.make_dual(p.detach(), t) for p, t in zip(points, directions, strict=True)]
            found = [fwAD.unpack_dual(out).tangent for out in function(*duals)]
        pushed = [t for t, out in zip(found, outputs, strict=True) if out.requires_grad]
        forward = 0.0
        for tangent, seed in zip(pushed, seeds, strict=True):
            if tangent is not None:
                assert tangent.shape == seed.shape
                assert tangent.dtype is seed.dtype
                forward += inner(seed, tangent)
        close = abs(forward - reverse) <= 1e-7 * (1 + abs(reverse))
        assert close or (forward != forward and reverse != reverse), (sample, forward, reverse)


def test_levels():
    x = tp.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(x, x)
    with pytest.raises(RuntimeError, match="must be a positive number"):
        fwAD.exit_dual_level()
    assert fwAD.unpack_dual(x).tangent is None
    with fwAD.dual_level() as level:
        assert level == 0
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            fwAD.enter_dual_level()
        dual = fwAD.make_dual(x, x * 2)
        assert fwAD.unpack_dual(dual).tangent.tolist() == [2, 2]
        assert fwAD.unpack_dual(fwAD.unpack_dual(dual).primal).tangent is None
        assert fwAD.unpack_dual(dual.detach()).tangent is None
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fwAD.make_dual(dual, x)
        with pytest.raises(RuntimeError, match="different size"):
            fwAD.make_dual(x, tp.ones(3))
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            fwAD.make_dual(tp.ones(2, dtype=tp.int64), x)
        with pytest.raises(RuntimeError, match="Invalid level"):
            fwAD.make_dual(x, x, level=3)
    assert fwAD.unpack_dual(dual).tangent is None
    assert not dual._tangents


PROGRAMS = {
    "view": lambda L, x, w: x.view(6)[1:5].reshape(2, 2),
    "write into view": lambda L, x, w: write(x * 2, lambda y: y[0].mul_(w)),
    "write dual into plain": lambda L, x, w: write(
        L.zeros(2, 3, dtype=x.dtype), lambda y: y[1].copy_(w)
    ),
    "setitem": lambda L, x, w: write(x * 1, lambda y: y.__setitem__((0, 1), w[2])),
    "add": lambda L, x, w: write(x * 1, lambda y: y.add_(w)),
    "zero": lambda L, x, w: write(x * 1, lambda y: y[0].zero_()),
    "fill": lambda L, x, w: write(x * 1, lambda y: y.fill_(3.0)),
    "masked": lambda L, x, w: write(x * 1, lambda y: y.masked_fill_(y > 0, 1.0)),
    "unsqueeze": lambda L, x, w: write(x * 1, lambda y: y.unsqueeze_(0)),
    "detach in place": lambda L, x, w: x + write(x * w, lambda y: y.detach_()),
    "index_add": lambda L, x, w: write(
        x * 1, lambda y: y.index_add_(1, L.tensor([0, 2]), w[:2].expand(2, 2))
    ),
    "where": lambda L, x, w: L.where(x > w, x, w * w),
    "norm": lambda L, x, w: (x - w).norm(),
    "softmax": lambda L, x, w: x.softmax(1) @ w,
    "sort": lambda L, x, w: x.sort(1)[0],
    "max": lambda L, x, w: x.max(1)[0],
    "prod": lambda L, x, w: x.prod(0),
    "cumprod": lambda L, x, w: x.cumprod(1),
    "cat": lambda L, x, w: L.cat([x, w[None], L.ones(1, 3, dtype=x.dtype)]),
    "einsum": lambda L, x, w: L.einsum("ij,j->i", x, w),
    "solve": lambda L, x, w: L.linalg.solve(x @ x.T + L.eye(2, dtype=x.dtype), x),
    "det": lambda L, x, w: L.linalg.det(x @ x.T),
    "svd": lambda L, x, w: L.linalg.svd(x, full_matrices=False)[1],
    "complex": lambda L, x, w: (L.complex(x, x * w) ** 2).abs(),
    "fft": lambda L, x, w: L.fft.rfft(x).abs(),
    "float32": lambda L, x, w: x.float() * w.float(),
}


def write(y, change):
    change(y)
    return y


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own use of it
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_torch(name):
    torch = pytest.importorskip("torch", reason="compares with torch")
    import torch.autograd.forward_ad as theirs

    def run(L, api):
        def point(values):
            return L.tensor(values, dtype=L.float64)

        x = point([[0.3, -1.2, 0.7], [1.5, 0.2, -0.4]])
        w = point([0.5, 2.0, -1.0])
        with api.dual_level():
            dx = api.make_dual(x, point([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]]))
            dw = api.make_dual(w, point([2.0, -1.0, 0.25]))
            primal, tangent = api.unpack_dual(PROGRAMS[name](L, dx, dw))
            return primal.tolist(), None if tangent is None else tangent.tolist()

    expected = run(torch, theirs)
    got = run(tp, fwAD)
    for a, b in zip(expected, got, strict=True):
        if a is None:
            assert b is None or not any(tp.tensor(b).flatten().tolist())
        else:
            assert torch.allclose(torch.tensor(a), torch.tensor(b), rtol=1e-6)


DRAWN = {
    "bernoulli": lambda x: tp.bernoulli(x),
    "bernoulli of a number": lambda x: x.bernoulli(0.5),
    "normal, by means": lambda x: tp.normal(x, 1.0),
    "normal, by deviations": lambda x: tp.normal(0.0, x),
    "normal, by both": lambda x: tp.normal(x, x),
    "poisson": lambda x: tp.poisson(x),
    "poisson of none": lambda x: tp.poisson(x[:0]),
    **{
        f"{name}_": lambda x, name=name, args=args: getattr(x * 1, f"{name}_")(*args)
        for name, args in {
            "uniform": (), "normal": (), "random": (), "exponential": (), "geometric": (0.5,),
            "cauchy": (), "log_normal": (), "bernoulli": (0.5,),
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_tangents_of_samples_are_zeros(name):
    with fwAD.dual_level():
        drawn = DRAWN[name](fwAD.make_dual(tp.full((3,), 0.5), tp.ones(3)))
        tangent = fwAD.unpack_dual(drawn).tangent
        assert tangent.shape == drawn.shape
        assert not tangent.any()


@pytest.mark.parametrize("bag", [False, True])
def test_limited_norms_leave_tangents_alone(bag):
    weight = tp.tensor([[3.0, 4.0], [1.0, 0.0]])
    call = tp.nn.functional.embedding_bag if bag else tp.nn.functional.embedding
    with fwAD.dual_level():
        dual = fwAD.make_dual(weight, tp.tensor([[1.0, 2.0], [3.0, 4.0]]))
        taken = call(tp.tensor([[0], [1]]), dual, max_norm=1.0)
        found = fwAD.unpack_dual(taken)
        assert fwAD.unpack_dual(dual).tangent.tolist() == [[1, 2], [3, 4]]
        assert found.tangent.reshape(2, 2).tolist() == [[1, 2], [3, 4]]
    tp.testing.assert_close(weight, tp.tensor([[0.6, 0.8], [1.0, 0.0]]))


def test_tangents_are_differentiable():
    x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, tp.ones(2, dtype=tp.float64))
        tangent = fwAD.unpack_dual(dual.prod().exp()).tangent
        (second,) = grad(tangent, x)
    p = x.detach().prod().exp()
    a, b = x.detach()
    expected = tp.stack([p * b * (a + b) + p, p * a * (a + b) + p])
    assert tp.allclose(second, expected)


def test_tangents_of_a_backward_pass():
    x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, tp.tensor([1.0, 0.0], dtype=tp.float64))
        (g,) = grad(dual.exp().tanh().sum(), dual)
        column = fwAD.unpack_dual(g).tangent
    matrix = tp.autograd.functional.hessian(lambda x: x.exp().tanh().sum(), x.detach())
    assert tp.allclose(column, matrix[:, 0])


def test_out_is_refused():
    with fwAD.dual_level():
        dual = fwAD.make_dual(tp.ones(2), tp.ones(2))
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            tp.exp(dual, out=tp.empty(2))


class Cube(tp.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def test_function():
    class Without(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    with fwAD.dual_level():
        dual = fwAD.make_dual(tp.tensor(2.0), tp.tensor(1.0))
        assert fwAD.unpack_dual(Cube.apply(dual)) == (8.0, 12.0)
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            Without.apply(dual)


def test_rules_of_plugins():
    op = tp.core.dispatch.op_registry.get_op("floor_divide")
    with pytest.raises(RegistrationError, match="speaks of 'inputs'"):
        tangents.TangentRule(op, tangents.linear("add", "inputs"))
    with pytest.raises(RegistrationError, match="asks for 'g'"):
        tangents.TangentRule(op, tangents.tangent("add", input=lambda g: g))

    class Twice:
        name = "twice"

        @plugins.hookimpl
        def tensorplug_tangents(self):
            return [tangents.linear("sum", "input")]

    with pytest.raises(
        RegistrationError,
        match=r"tangent of .sum. has the same priority \(0\) as the one of autograd",
    ):
        plugins.register(Twice())
    assert derivatives.derivative("add").op == "add"


# --- duals made inside of vmap ------------------------------------------------------------------

_POINTS = tp.arange(6.0, dtype=float64).reshape(2, 3)


def _pushed(x, v):
    return fwAD.unpack_dual((fwAD.make_dual(x, v) ** 2).sin().sum(-1)).tangent


_EYE = tp.eye(3, dtype=float64)


@pytest.mark.parametrize(
    ("mapped", "x", "v", "pair"),
    [
        (tp.vmap(_pushed), _POINTS, _POINTS + 1, lambda x, v: (x, v)),
        (tp.vmap(_pushed, (0, None)), _POINTS, _POINTS[0], lambda x, v: (x, v)),
        (tp.vmap(_pushed, (None, 0)), _POINTS[1], _POINTS + 1, lambda x, v: (x, v)),
        (tp.vmap(_pushed, (1, 1)), _POINTS, _POINTS + 1, lambda x, v: (x.T, v.T)),
        (tp.vmap(tp.vmap(_pushed, (None, 0)), (0, None)), _POINTS, _EYE, lambda x, v: (x[:, None], v)),
        (tp.vmap(tp.vmap(_pushed, (0, None)), (None, 0)), _POINTS, _EYE, lambda x, v: (x, v[:, None])),
    ],
)  # fmt: skip
def test_duals_inside_of_vmap(mapped, x, v, pair):
    with fwAD.dual_level():
        found = mapped(x, v)
    x, v = pair(x, v)
    tp.testing.assert_close(found, (2 * x * (x * x).cos() * v).sum(-1))


def test_a_dual_is_parted_inside_of_vmap():
    def primal(dual):
        parts = fwAD.unpack_dual(dual)
        assert fwAD.unpack_dual(parts.primal).tangent is None
        return parts.primal, parts.tangent

    with fwAD.dual_level():
        value, tangent = tp.vmap(primal)(fwAD.make_dual(_POINTS, _POINTS + 1))
        assert value.equal(_POINTS)
        assert tangent.equal(_POINTS + 1)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            tp.vmap(lambda x: fwAD.make_dual(fwAD.make_dual(x, x), x))(_POINTS)
        with pytest.raises(RuntimeError, match="different size"):
            tp.vmap(lambda x: fwAD.make_dual(x, x[:1]))(_POINTS)


def test_a_tangent_is_printed() -> None:
    with fwAD.dual_level():
        dual = fwAD.make_dual(tp.ones(2), tp.full((2,), 2.0))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([2., 2.]))"


#: How a tensor of shape (2, 3) may lie in memory.
LAYOUTS = {
    "rows": lambda L: L.arange(6.0).reshape(2, 3),
    "columns": lambda L: L.arange(6.0).reshape(3, 2).t(),
    "part": lambda L: L.arange(12.0)[3:9].view(2, 3).detach(),
    "steps": lambda L: L.arange(12.0).view(2, 6)[:, ::2].detach(),
    "expanded": lambda L: L.arange(3.0).expand(2, 3),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own use of it
@pytest.mark.parametrize("of_tangent", ["rows", "columns", "part", "steps"])
@pytest.mark.parametrize("of_tensor", ["rows", "columns", "part", "steps"])
def test_a_tangent_lies_in_memory_as_its_tensor(of_tensor, of_tangent):
    """So that what shows memory finds the same elements of both; a copy if need be."""
    torch = pytest.importorskip("torch", reason="the reference")
    results = []
    for L in (tp, torch):
        api = L.autograd.forward_ad
        x, t = LAYOUTS[of_tensor](L), LAYOUTS[of_tangent](L)
        given = t.clone()
        with api.dual_level():
            dual = api.make_dual(x, t)
            found = api.unpack_dual(dual).tangent
            part = api.unpack_dual(dual.as_strided((2,), (x.stride(1),), x.storage_offset()))
            results.append((found is t, found.stride(), found.tolist(), part.tangent.tolist()))
            found.mul_(2)
        if not results[-1][0]:
            assert L.equal(t, given)
    assert results[0] == results[1]


def test_a_tangent_of_shared_elements_is_taken_as_it_is():
    x = LAYOUTS["expanded"](tp)
    t = tp.ones(2, 3)
    with fwAD.dual_level():
        assert fwAD.unpack_dual(fwAD.make_dual(x, t) * 2).tangent.tolist() == [[2.0] * 3] * 2
