"""Ops that write into tensors that are there already; on a device that declares ``in_place``."""

from __future__ import annotations

from typing import Any

from tensorplug.testing import cases


def test_out(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_out(record, device, dtype))


def test_inplace(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_inplace(record, device, dtype))
