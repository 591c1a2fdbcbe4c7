"""Every op under random transforms, at ordinary values and where guards are, against a loop.

A test run has one case for each op and dtype; ``make fuzz`` has ``TENSORPLUG_FUZZ`` cases in all.
"""

import os

import pytest

import tensorplug as tp
from tensorplug import plugins
from tensorplug.autograd import derivative
from tensorplug.autograd.forward.tangents import tangent
from tensorplug.autograd.vmap.vmap_rules import vmap_rule
from tensorplug.core.device.dtypes import complex128, float64
from tensorplug.testing import transform_cases
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

RECORDS = list(all_records())
SLICES = 12
SEEDS = max(1, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 700)


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


@pytest.mark.parametrize("op", sorted({fault[0] for fault in FAULTS.values()}))
def test_without_the_fault_there_is_none(op):
    records = [record for record in RECORDS if record.op == op]
    assert faults(records, (float64,), range(90))[0] == []
