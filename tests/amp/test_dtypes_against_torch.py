"""The dtypes of what every op returns within ``autocast("cpu")``, beside torch's."""

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

from tests.ops.test_against_torch import counterpart, to_torch  # noqa: E402

tp.nn  # noqa: B018  # its ops have records too

RECORDS = [
    record for record in all_records() if "torch" not in record.skips and counterpart(record)
]
DTYPES = (tp.float32, tp.bfloat16, tp.float16, tp.float64)
SLICES = 4
#: Given one half precision within a block of the other, torch leaves the one or goes to float32.
OF_THE_OTHER_HALF = ("block_diag", "linalg_cross", "lstm")


def dtypes(result):
    items = result if isinstance(result, (tuple, list)) else (result,)
    return [
        name
        for item in items
        for name in (
            dtypes(item)
            if isinstance(item, (tuple, list))
            else [str(item.dtype).split(".")[-1]]
            if hasattr(item, "dtype")
            else []
        )
    ]


def within(lib, half, function, args, kwargs):
    """Return the dtypes of what a call returns, or None where the library refuses it."""
    with lib.autocast("cpu", dtype=getattr(lib, half)):
        try:
            return dtypes(function(*args, **kwargs))
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_ops(part):
    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        function = counterpart(record)
        for dtype in [dtype for dtype in DTYPES if dtype in record.dtypes]:
            sample = next(iter(cases.samples_of(record, "cpu", dtype)), None)
            for half in ("bfloat16", "float16") if sample is not None else ():
                if record.op in OF_THE_OTHER_HALF and dtype.is_half and dtype.name != half:
                    continue
                args, kwargs = cases.map_tensors((sample.args, sample.kwargs), to_torch)
                expected = within(torch, half, function, args, kwargs)
                if expected is None:
                    continue
                found = within(tp, half, get_op(record.op).call, sample.args, sample.kwargs)
                count += 1
                if found != expected:
                    wrong.append(
                        f"{record.op} of {dtype.name} in {half}: {found}, torch {expected}"
                    )
    assert not wrong, "\n".join(wrong)
    assert count >= 500
