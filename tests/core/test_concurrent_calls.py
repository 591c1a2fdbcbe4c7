"""Threads that call one op with other arguments at the same time get what each would get alone."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.call_cache import clear_call_caches
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.nn import functional as F
from tensorplug.testing.cases import map_tensors, samples_of, tensors_in
from tensorplug.testing.comparison import as_exact
from tensorplug.testing.records import all_records

F.relu  # noqa: B018  # its ops have records too
THREADS, CALLS, SLICES = 4, 6, 6
DTYPES = (tp.float32, tp.float64, tp.int64, tp.bfloat16)
RECORDS = [
    record
    for record in all_records()
    if not get_op(record.op).random
    and record.op not in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def often_interrupted() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def outcome(op: Any, sample: Any) -> Any:
    """Return results and gradients of a call as arrays, or how it fails."""
    args, kwargs = map_tensors((sample.args, sample.kwargs), lambda t: t.detach().clone())
    points = [t for t in tensors_in((args, kwargs)) if t.dtype in (tp.float32, tp.float64)]
    try:
        results = list(tensors_in(op.call(*args, **kwargs)))
        for point in points:
            point.requires_grad_()
        roots = [out for out in tensors_in(op.call(*args, **kwargs)) if out.requires_grad]
        if roots:
            found = tp.autograd.grad(
                roots, points, [tp.ones_like(out) for out in roots], allow_unused=True
            )
            results += [gradient for gradient in found if gradient is not None]
        return [as_exact(result.detach()).copy() for result in results]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def assert_near(expected: list[Any], found: list[Any], halves: bool) -> None:
    """Raise AssertionError unless arrays are equal but for their rounding.

    A call that meets another thread's first one, whose steps are being traced, takes these steps itself;
    replayed, some go together and round once.
    """
    tolerance = 2e-2 if halves else 1e-5
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, tolerance, tolerance, err_msg="other values")


def work(op: Any, cases: list[Any], seed: int, start: Any, wrong: list[Any]) -> None:
    order = random.Random(seed)
    start.wait()
    for _ in range(CALLS):
        sample, expected = order.choice(cases)
        found = outcome(op, sample)
        given = tensors_in((sample.args, sample.kwargs))
        halves = any(tensor.dtype is tp.bfloat16 for tensor in given)
        try:
            if isinstance(found, str) or isinstance(expected, str):
                assert found == expected
            else:
                assert_near(expected, found, halves)
        except (AssertionError, ValueError) as error:
            wrong.append(f"{op.name} {sample}: {error}"[:400])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_each_op(part: int) -> None:
    wrong: list[str] = []
    for number, record in enumerate(RECORDS[part::SLICES]):
        op = get_op(record.op)
        samples = [
            sample
            for dtype in DTYPES
            if dtype in record.dtypes
            for sample in samples_of(record, "cpu", dtype)[:3]
        ]
        if not samples:
            continue
        with np.errstate(all="ignore"):
            cases = [(sample, outcome(op, sample)) for sample in samples]
        clear_call_caches()
        start = threading.Barrier(THREADS)
        threads = [
            threading.Thread(target=work, args=(op, cases, THREADS * number + seed, start, wrong))
            for seed in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong, "\n".join(wrong)
