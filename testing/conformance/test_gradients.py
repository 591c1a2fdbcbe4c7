"""Derivatives against finite differences, in double precision."""

from __future__ import annotations

from typing import Any

from tensorplug.testing import cases


def test_gradient(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_gradient(record, device, dtype))


def test_second_gradient(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_second_gradient(record, device, dtype))
