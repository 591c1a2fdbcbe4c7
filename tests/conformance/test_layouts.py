"""Random orders of dimensions in memory, for every op in one of its dtypes, in all under ``make fuzz``."""

import os
import random

import pytest

from tensorplug.testing import layout_cases
from tensorplug.testing.records import OpRecord, all_records

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "0"))
CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for record in all_records()
    for dtype in (record.dtypes if COUNT else layout_cases.dtypes_of(record, "cpu"))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_random_orders(record: OpRecord, dtype: object) -> None:
    generator = random.Random(f"{record.op} {dtype}")

    def shuffled(ndim: int) -> list[int]:
        return generator.sample(range(ndim), ndim)

    layouts = {f"order {number}": shuffled for number in range(max(COUNT // 2000, 1))}
    layout_cases.check_layouts(record, "cpu", dtype, layouts)
