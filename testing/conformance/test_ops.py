"""Every op against its reference; each kernel's result is also held to the op's declaration."""

from __future__ import annotations

from typing import Any

import pytest

from tensorplug.testing import cases, layout_cases

pytestmark = pytest.mark.usefixtures("checked")


def test_forward(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_forward(record, device, dtype))


def test_meta(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_meta(record, device, dtype))


def test_memory(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_memory(record, device, dtype))


def test_errors(record: Any, device: str, count: Any) -> None:
    count(cases.check_errors(record, device))


def test_layouts(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(layout_cases.check_layouts(record, device, dtype))
