"""A call that names all its arguments writes to ``out=`` what the same call by position writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from scalar_cases import outcome, records

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import OpRecord

SAMPLES = 3


def differing(record: OpRecord) -> Iterator[str]:
    """Yield the calls that come to something else, or raise."""
    op = get_op(record.op)
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    for sample in cases.samples_of(record, "cpu", dtype)[:SAMPLES]:
        named = dict(zip(op.names, sample.args, strict=False)) | sample.kwargs
        results = outcome(partial(op.call, *sample.args, **sample.kwargs))
        if len(sample.args) > len(op.names) or outcome(partial(op.call, **named)) != results:
            continue  # some are taken by position alone, as in torch
        made = op.call(*sample.args, **sample.kwargs)

        def target(made: Any = made) -> Any:
            return cases.map_tensors(made, tp.empty_like)

        plain = outcome(lambda: op.call(*sample.args, **sample.kwargs, out=target()))  # noqa: B023
        found = outcome(lambda: op.call(**named, out=target()))  # noqa: B023
        if found != plain:
            yield f"{record.op}({sample}): {str(found)[:100]}, by position {str(plain)[:100]}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_named_arguments_make_no_difference() -> None:
    unset = ("empty", "new_empty")  # hold whatever there was
    chosen = [r for r in records() if not get_op(r.op).view and not r.op.startswith(unset)]
    wrong = [said for record in chosen for said in differing(record)]
    assert not wrong, "\n".join(wrong)
