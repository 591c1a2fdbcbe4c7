"""Every op against its reference, in all variants."""

from __future__ import annotations

from typing import Any

from tensorplug.testing import cases


def test_forward(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_forward(record, device, dtype))


def test_meta(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_meta(record, device, dtype))


def test_out(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_out(record, device, dtype))


def test_inplace(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_inplace(record, device, dtype))


def test_errors(record: Any, device: str, count: Any) -> None:
    count(cases.check_errors(record, device))


def test_gradient(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_gradient(record, device, dtype))


def test_second_gradient(record: Any, dtype: Any, device: str, count: Any) -> None:
    count(cases.check_second_gradient(record, device, dtype))
