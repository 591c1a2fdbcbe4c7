"""Every op under random transforms, at ordinary values and where guards are, against a loop.

A test run has two cases for each op and dtype; ``make fuzz`` has ``TENSORPLUG_FUZZ`` cases in all.
"""

import os

import pytest

import tensorplug as tp
from tensorplug import plugins
from tensorplug.autograd import derivative
from tensorplug.autograd.forward.tangents import tangent
from tensorplug.autograd.vmap.vmap_rules import vmap_rule
from tensorplug.core.device.dtypes import complex128, float64
from tensorplug.testing import cases, transform_cases
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

RECORDS = list(all_records())
SLICES = 12
SEEDS = max(2, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 700)


def faults(records, dtypes, seeds):
    """Run cases; return what is wrong, and how many there were something to compare in."""
    found, count = [], 0
    for record in records:
        for dtype in dtypes:
            for seed in seeds if dtype in record.dtypes else ():
                drawn = transform_cases.draw(record, dtype, seed)
                if drawn is not None:
                    try:
                        count += transform_cases.check(*drawn)
                    except AssertionError as error:
                        found.append(str(error))
    return found, count


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities
@pytest.mark.parametrize("part", range(SLICES))
def test_ops(part):
    found, count = faults(RECORDS[part::SLICES], (float64, complex128), range(SEEDS))
    assert not found, "\n\n".join(found)
    assert count >= 30 * SEEDS


# Gradients at equal and vanishing elements that are not torch's.
NOT_TORCHS = {
    "as_strided_scatter": "torch lets the gradient through where src was written",
    "div": "0 / 0 inside of the rounding, where torch stops at it",
    "embedding_bag": "which of equal elements is the greatest is not said",
    "hypot": "NaN at zero in torch",
    "polar": "torch has no slope at a radius of zero, and the wrong sign below",
    "std": "a quotient of two rounding errors, where elements are equal",
    "std_mean": "a quotient of two rounding errors, where elements are equal",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_guards_against_torch(part):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    from tests.ops.test_against_torch import counterpart, to_torch

    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        function = (
            None if record.op in NOT_TORCHS or "torch" in record.skips else counterpart(record)
        )
        for seed in range(3 * SEEDS) if function is not None and float64 in record.dtypes else ():
            drawn = transform_cases.draw(record, float64, seed)
            if drawn is None or drawn[0].values not in ("zeros", "equal"):
                continue
            case, ours, leaves = drawn
            row = [known[0] for known in leaves]
            places = {id(point): number for number, point in enumerate(case.points)}
            theirs = [torch.tensor(value.tolist(), dtype=torch.float64) for value in row]
            theirs = [value.requires_grad_() for value in theirs]

            def swapped(value, places=places, theirs=theirs):
                if isinstance(value, (list, tuple)):
                    return type(value)([swapped(item) for item in value])
                if isinstance(value, dict):
                    return {key: swapped(item) for key, item in value.items()}
                number = places.get(id(value))
                return to_torch(value) if number is None else theirs[number]

            try:
                expected = function(*swapped(case.call.args), **swapped(case.call.kwargs))
                expected = expected if isinstance(expected, (tuple, list)) else (expected,)
                live = [value for value in expected if getattr(value, "requires_grad", False)]
                total = sum(
                    (value if value.is_floating_point() else value.real).sum() for value in live
                )
                slopes = torch.autograd.grad(total, theirs, allow_unused=True)
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
                continue
            points = [value.clone().requires_grad_() for value in row]
            mine = sum((o.real if o.dtype.is_complex else o).sum() for o in ours(*points))
            if not mine.requires_grad:
                continue
            found = tp.autograd.grad(mine, points, allow_unused=True)
            for got, value in zip(found, slopes, strict=True):
                if got is not None and value is not None:
                    value = tp.tensor(
                        value.resolve_conj().numpy(force=True).tolist(), dtype=got.dtype
                    )
                    count += 1
                    try:
                        assert_close(
                            got, value.reshape(got.shape), rtol=1e-6, atol=1e-7, equal_nan=True
                        )
                    except AssertionError as error:
                        wrong.append(f"{case}: {error}")
    assert not wrong, "\n\n".join(wrong)
    assert count


@pytest.fixture
def planted(request):
    class Planted:
        name = "planted"

    setattr(Planted, request.param[1], plugins.hookimpl(lambda self: [request.param[2]]))
    plugin = Planted()
    plugins.register(plugin)
    yield request.param[0]
    plugins.unregister(plugin.name)


def of_the_first(info, in_dims, input):
    return input.movedim(in_dims[0], 0)[:1].expand(
        info.batch_size, *[-1] * (input.ndim - 1)
    ).exp(), 0


FAULTS = {
    "a batch rule": ("exp", "tensorplug_vmap_rules", vmap_rule("exp", of_the_first, priority=1)),
    "a tangent": (
        "sinh",
        "tensorplug_tangents",
        tangent("sinh", input=lambda t, input: -t * input.cosh(), priority=1),
    ),
    "a derivative that is not linear": (
        "tanh",
        "tensorplug_derivatives",
        derivative(
            "tanh",
            input=lambda g, result: (
                (g == 0).logical_not() * (g - g * g * result * result / g.abs())
            ),
            priority=1,
        ),
    ),
    "a guard": (
        "linalg_vector_norm",
        "tensorplug_derivatives",
        derivative(
            "linalg_vector_norm", x=lambda g, x, result: g.sum() * x / result.max(), priority=1
        ),
    ),
    "a guard of the second derivative": (
        "atan2",
        "tensorplug_derivatives",
        derivative(
            "atan2",
            input=lambda g, input, other: g * _masked(other, input, other),
            other=lambda g, input, other: -g * _masked(input, input, other),
            priority=1,
        ),
    ),
}


def _masked(value, y, x):
    square = y * y + x * x
    return tp.where(square == 0, 0, value / square)


@pytest.mark.parametrize("planted", FAULTS.values(), indirect=True, ids=FAULTS)
def test_planted_faults_are_found(planted):
    records = [record for record in RECORDS if record.op == planted]
    assert faults(records, (float64,), range(90))[0]


# The first derivative is right. Transforms of it are all wrong in the same way: finite differences tell.
SECOND_FAULTS = {
    "a constant slope": (
        "sinh",
        "tensorplug_derivatives",
        derivative("sinh", input=lambda g, input: g * input.detach().cosh(), priority=1),
    ),
    "one factor too few": (
        "matmul",
        "tensorplug_derivatives",
        derivative(
            "matmul",
            input=lambda g, other: (
                g.detach() @ other.mT if other.ndim > 1 else g[..., None] * other
            ),
            other=lambda g, input: input.mT @ g if input.ndim > 1 else input[..., None] * g,
            priority=1,
        ),
    ),
    "the sign of what it saved": (
        "tanh",
        "tensorplug_derivatives",
        derivative(
            "tanh",
            input=lambda g, result: g * (1 - 2 * result.detach() ** 2 + result * result),
            priority=1,
        ),
    ),
}


@pytest.mark.parametrize("planted", SECOND_FAULTS.values(), indirect=True, ids=SECOND_FAULTS)
def test_faults_of_second_derivatives_are_found(planted):
    record = next(record for record in RECORDS if record.op == planted)
    with pytest.raises(AssertionError, match=planted):
        cases.check_second_gradient(record, "cpu", float64)


@pytest.mark.slow
def test_all_ops_have_cases():
    """Each op that is differentiable in double precision is drawn, and its second derivative checked."""
    wanted = [
        record
        for record in RECORDS
        if record.gradient and {float64, complex128} & set(record.dtypes)
    ]
    assert len(wanted) > 480
    for record in wanted:
        dtypes = [dtype for dtype in (float64, complex128) if dtype in record.dtypes]
        drawn = [transform_cases.draw(record, dtype, seed) for dtype in dtypes for seed in range(4)]
        # Batches of none alone would be no test.
        assert any(all(t.numel() for t in one[0].points) for one in drawn if one), record.op
        there = [cases.gradient_cases(record, "cpu", dtype, ("contiguous",), 0) for dtype in dtypes]
        assert any(next(found, None) for found in there), record.op


@pytest.mark.parametrize("op", sorted({fault[0] for fault in FAULTS.values()}))
def test_without_the_fault_there_is_none(op):
    records = [record for record in RECORDS if record.op == op]
    assert faults(records, (float64,), range(90))[0] == []
