"""``out=None`` inside of transforms, of every op: as without it."""

import itertools

import pytest

import tensorplug as tp
from tensorplug.core.device.dtypes import float64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

#: What they make is left as it was found in memory.
UNFILLED = {"empty_like", "new_empty", "new_empty_strided"}
RECORDS = [
    record for record in all_records() if float64 in record.dtypes and record.op not in UNFILLED
]


def transformed(function, points):
    """Return what a function gives for a batch of one, and the tangents of what it gives."""
    tp.manual_seed(0)
    batch = [point.detach().unsqueeze(0) for point in points]
    tangents = tuple([point.detach() for point in points])
    return (
        *tp.vmap(function, randomness="same")(*batch),
        *tp.func.jvp(function, tangents, tangents)[1],
    )


@pytest.mark.filterwarnings("ignore")
def test_every_op(monkeypatch):
    wrong, count = [], 0
    for record in RECORDS:
        op = get_op(record.op)
        call = op.call
        drawn = cases.gradient_cases(record, "cpu", float64, ("contiguous",))
        for sample, _, function, points in itertools.islice(drawn, 1):
            try:
                expected = transformed(function, points)
            except Exception:
                continue
            monkeypatch.setattr(op, "call", lambda *a, call=call, **k: call(*a, **k, out=None))
            try:
                for one, other in zip(transformed(function, points), expected, strict=True):
                    assert_close(one, other)
                count += 1
            except Exception as error:
                wrong.append(f"{record.op}{sample}: {type(error).__name__} {error}"[:200])
            monkeypatch.setattr(op, "call", call)
    assert not wrong, "\n".join(wrong)
    assert count > 300
