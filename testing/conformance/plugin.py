"""The pytest plugin of the conformance suite: its options, products and summary.

``tensorplug_pytest`` loads it where the suite is asked for.
"""

from __future__ import annotations

import fnmatch
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tensorplug.core import plugins
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import ALL_DTYPES, float64
from tensorplug.core.device.runtime import CAPABILITIES
from tensorplug.core.dispatch import contracts
from tensorplug.core.dispatch.keys import canonical_device
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.errors import DeviceNotAvailableError, DTypeNotAvailableError, PluginWarning
from tensorplug.testing import device_cases, layout_cases
from tensorplug.testing.cases import GRADIENT_DTYPES
from tensorplug.testing.records import OpRecord, all_records

SUITE = "tensorplug.testing.conformance"

# What a test of devices needs of the device, by the test's name.
_NEEDS = {
    "dlpack": "dlpack",
    "host_memory": "host_memory",
    "in_place": "in_place",
    "inplace": "in_place",
    "layouts": "views",
    "out": "in_place",
    "views": "views",
}
# Tests of devices that belong to ops, by the test's name; with ``--op`` the others do not run.
_OPS = {"random_bits": ("philox_bits",), "random": tuple(device_cases.DRAWS)}


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("tensorplug conformance")
    group.addoption("--device", default="cpu", help="the device under test (default: cpu)")
    group.addoption("--op", default="*", help="patterns of the ops to test, such as 'linalg_*,sum'")
    sample = "take every Nth case of the ops, always the same ones"
    group.addoption("--every", default=1, type=int, metavar="N", help=sample)


def pytest_configure(config: Any) -> None:
    if config.getoption("--every") < 1:
        raise pytest.UsageError(f"--every: expected 1 or more, got {config.getoption('--every')}")


def pytest_sessionstart(session: Any) -> None:
    """Load the device under test; say what is missing instead of failing once per module."""
    try:
        with _others_may_fail():
            canonical_device(Device(session.config.getoption("--device")))
    except (DeviceNotAvailableError, RuntimeError, ValueError) as error:
        raise pytest.UsageError(f"--device: {error}") from None


@contextmanager
def _others_may_fail() -> Generator[None, None, None]:
    """Let a plugin that cannot be loaded be a warning, whatever the filters: it may be a stranger's."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", PluginWarning)
        yield


# --- which cases there are ----------------------------------------------------------------------


def pytest_generate_tests(metafunc: Any) -> None:
    if not _in_suite(metafunc.module):
        return
    device = metafunc.config.getoption("--device")
    pattern = metafunc.config.getoption("--op")
    variant = _variant(metafunc.function)
    names = metafunc.fixturenames
    if "record" in names:
        with _others_may_fail():
            records = [record for record in all_records() if _chosen(record.op, pattern)]
        every = metafunc.config.getoption("--every")
        first = len(variant) % every  # so that not all variants take the same ones
        if "dtype" in names:
            cases = [case for record in records for case in _by_dtype(record, variant, device)]
            metafunc.parametrize("record,dtype", cases[first::every])
        else:
            cases = [_case(record, id=record.op) for record in records]
            metafunc.parametrize("record", cases[first::every])
    elif variant in _OPS:
        chosen = [name for name in _OPS[variant] if _chosen(name, pattern)]
        metafunc.parametrize("draw", [_case(name, id=name) for name in chosen])
    elif "capability" in names:
        declared = device_cases.runtime_of(device).capabilities
        absent = [name for name in sorted(CAPABILITIES) if name not in declared]
        metafunc.parametrize("capability", absent if pattern == "*" else [])
    elif pattern != "*":
        metafunc.parametrize("device", [])
    elif "dtype" in names:
        reasons = {
            dtype: "" if variant == "declared_dtype" else device_cases.missing(device, dtype)
            for dtype in ALL_DTYPES
        }
        cases = [_case(dtype, id=dtype.name, reason=why) for dtype, why in reasons.items()]
        metafunc.parametrize("dtype", cases)


def _chosen(op: str, patterns: str) -> bool:
    return any(fnmatch.fnmatch(op, pattern) for pattern in patterns.split(","))


def _by_dtype(record: OpRecord, variant: str, device: str) -> Iterator[Any]:
    gradient = variant in ("gradient", "second_gradient")
    if gradient and not record.gradient:
        return
    if variant == "inplace" and get_op(record.op).inplace is None:
        return
    if variant == "memory" and not device_cases.has_kernel(record.op, device):
        return
    dtypes = layout_cases.dtypes_of(record, device) if variant == "layouts" else record.dtypes
    for dtype in dtypes:
        if gradient and dtype not in GRADIENT_DTYPES:
            continue
        reason = record.skips.get(variant) or device_cases.missing(device, dtype)
        if gradient and not reason:
            reason = device_cases.missing(device, float64)
        yield _case(record, dtype, id=f"{record.op}-{dtype.name}", reason=reason)


def _case(*values: Any, id: str, reason: str | None = "") -> Any:
    marks = [pytest.mark.skip(reason=reason)] if reason else []
    return pytest.param(*values, id=id, marks=marks)


#: It warns as torch's does, also where warnings are errors.
_OF_RANGE = pytest.mark.filterwarnings("ignore:torch.range is deprecated")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    device = config.getoption("--device")
    kept, dropped = [], []
    expected: Mapping[str, str] | None = None
    for item in items:
        if not _in_suite(item.module):
            kept.append(item)
            continue
        if any("empty parameter set" in str(mark.kwargs) for mark in item.iter_markers("skip")):
            dropped.append(item)  # what ``--op`` leaves out
            continue
        kept.append(item)
        item.add_marker(_OF_RANGE)
        needed = _NEEDS.get(_variant(item.function))
        if needed is not None and needed not in device_cases.runtime_of(device).capabilities:
            reason = f"the device declares no {needed}"
            item.add_marker(pytest.mark.skip(reason=reason))
        if expected is None:
            expected = expected_failures(device)
        for pattern, reason in expected.items():
            if fnmatch.fnmatch(case_of(item), pattern):
                _summary.matched.add(pattern)
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
                break
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Generator[None, object, object]:
    """Skip what needs a dtype that the device does not declare, such as the complex result of an FFT."""
    try:
        return (yield)
    except DTypeNotAvailableError as error:
        if not _in_suite(pyfuncitem.module):
            raise
        pytest.skip(str(error))


def case_of(item: Any) -> str:
    """Return the name of a case: ``forward/softmax-float32``, ``copies/int64``."""
    spec = getattr(item, "callspec", None)
    return _variant(item.function) + (f"/{spec.id}" if spec is not None else "")


def expected_failures(device: str) -> dict[str, str]:
    """Return the cases that are to fail, with the reasons.

    They are the attribute ``expected_failures`` of the device's runtime, and of the plugin objects
    that bring kernels for the device.
    """
    runtime = device_cases.runtime_of(device)
    listed = dict(runtime.expected_failures)
    for record in plugins.registered():
        if any(kernel.device == runtime.type for kernel in record.kernels):
            listed.update(getattr(record.plugin, "expected_failures", {}))
    for pattern, reason in listed.items():
        if not str(reason or "").strip():
            raise pytest.UsageError(
                f"{device}: {pattern!r} is expected to fail without a reason; write the reason as "
                "a string"
            )
    return listed


def _in_suite(module: Any) -> bool:
    return module.__name__.startswith(SUITE) or f"{module.__file__}".replace("\\", "/").rpartition(
        "/"
    )[0].endswith("testing/conformance")


def _variant(function: Any) -> str:
    return function.__name__.removeprefix("test_")


# --- fixtures -----------------------------------------------------------------------------------


@pytest.fixture
def device(request: Any) -> str:
    """Return the device under test."""
    return request.config.getoption("--device")


@pytest.fixture(scope="module")
def checked() -> Iterator[None]:
    """Check the result of every kernel call against its op's declaration, in a whole module."""
    before = contracts.every_call
    contracts.check_every_call(True)
    yield
    contracts.check_every_call(before)


@pytest.fixture
def count(request: Any) -> Any:
    """Return a function that adds to the number of single comparisons that the summary tells."""
    record = (
        request.node.callspec.params.get("record") if hasattr(request.node, "callspec") else None
    )
    request.node.user_properties.append(("op", "" if record is None else record.op))

    def add(number: int) -> None:
        request.node.user_properties.append(("comparisons", number))

    return add


# --- summary ------------------------------------------------------------------------------------


@dataclass
class _Summary:
    ops: set[str] = field(default_factory=set)
    outcomes: dict[str, int] = field(default_factory=dict)
    comparisons: int = 0
    matched: set[str] = field(default_factory=set)
    start: float = field(default_factory=time.monotonic)


_summary = _Summary()


def pytest_runtest_logreport(report: Any) -> None:
    properties = dict(report.user_properties)
    if report.when != "call" or "op" not in properties:
        return
    outcome = "expected failures" if hasattr(report, "wasxfail") else report.outcome
    _summary.outcomes[outcome] = _summary.outcomes.get(outcome, 0) + 1
    _summary.comparisons += properties.get("comparisons", 0)
    if properties["op"]:
        _summary.ops.add(properties["op"])


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    pattern = config.getoption("--op")
    if not _summary.outcomes:
        if pattern != "*" and not terminalreporter.stats.get("error"):
            terminalreporter.line(f"--op: no op that the suite has samples of matches {pattern!r}")
        return
    device = config.getoption("--device")
    terminalreporter.section(f"conformance of {device!r}")
    terminalreporter.line(
        f"{len(_summary.ops)} ops, {sum(_summary.outcomes.values())} cases "
        f"({', '.join(f'{n} {outcome}' for outcome, n in sorted(_summary.outcomes.items()))}), "
        f"{_summary.comparisons} comparisons in {time.monotonic() - _summary.start:.0f} s"
    )
    unused = set(expected_failures(device)) - _summary.matched
    if (
        unused
        and config.getoption("--op") == "*"
        and not getattr(config.option, "numprocesses", None)
    ):
        terminalreporter.line(f"expected failures that name no case: {', '.join(sorted(unused))}")
