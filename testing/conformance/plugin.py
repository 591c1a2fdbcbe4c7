"""The pytest plugin of the conformance suite: its options and products.

``tensorplug_pytest`` loads it where the suite is asked for.
"""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from tensorplug.core import plugins
from tensorplug.core.devices import Device
from tensorplug.core.kinds import canonical_device
from tensorplug.core.operators import get_op
from tensorplug.testing.cases import GRADIENT_DTYPES
from tensorplug.testing.records import all_records

_counts: dict[str, int] = {}


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("tensorplug conformance")
    group.addoption("--device", default="cpu", help="the device under test (default: cpu)")
    group.addoption("--op", default="*", help="pattern of the ops to test, such as 'linalg.*'")


def pytest_generate_tests(metafunc: Any) -> None:
    if "record" not in metafunc.fixturenames:
        return
    pattern = metafunc.config.getoption("--op")
    device = metafunc.config.getoption("--device")
    canonical_device(Device(device))
    capabilities = plugins.runtimes()[device.partition(":")[0]].capabilities
    records = [r for r in all_records() if fnmatch.fnmatch(r.op, pattern)]
    variant = metafunc.function.__name__.removeprefix("test_")
    cases = []
    for record in records:
        if "dtype" not in metafunc.fixturenames:
            cases.append(pytest.param(record, id=record.op))
            continue
        for dtype in record.dtypes:
            if variant in ("gradient", "second_gradient") and (
                dtype not in GRADIENT_DTYPES or not record.gradient
            ):
                continue
            if variant == "inplace" and get_op(record.op).inplace is None:
                continue
            marks = []
            reason = record.skips.get(variant) or _missing(dtype, capabilities)
            if reason:
                marks.append(pytest.mark.skip(reason=reason))
            cases.append(pytest.param(record, dtype, id=f"{record.op}-{dtype.name}", marks=marks))
    names = "record,dtype" if "dtype" in metafunc.fixturenames else "record"
    metafunc.parametrize(names, cases)


def _missing(dtype: Any, capabilities: frozenset[str]) -> str:
    """Return why a device cannot take a dtype, or an empty string."""
    needed = {"complex64": ("complex",), "complex128": ("complex", "float64")}.get(
        dtype.name, (dtype.name,) if dtype.name in ("float64", "float16", "bfloat16") else ()
    )
    absent = [name for name in needed if name not in capabilities]
    return f"the device declares no {' and '.join(absent)}" if absent else ""


@pytest.fixture
def device(request: Any) -> str:
    """Return the device under test."""
    return request.config.getoption("--device")  # type: ignore[no-any-return]


@pytest.fixture
def count(request: Any) -> Any:
    """Add to the number of single comparisons that the summary tells."""

    def add(number: int) -> None:
        _counts[request.function.__name__] = _counts.get(request.function.__name__, 0) + number
        request.node.user_properties.append(("comparisons", number))

    return add
