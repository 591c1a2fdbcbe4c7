"""What a device does beside running ops; only what it declares is asked of it."""

from __future__ import annotations

from typing import Any

from tensorplug.testing import device_cases as cases


def test_declared_dtype(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_declared_dtype(device, dtype))


def test_undeclared(capability: str, device: str, count: Any) -> None:
    count(cases.check_undeclared(device, capability))


def test_kernels_in_use(device: str, count: Any) -> None:
    count(cases.check_kernels_in_use(device))


def test_copies(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_copies(device, dtype))


def test_conversions(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_conversions(device, dtype))


def test_empty(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_empty(device, dtype))


def test_views(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_views(device, dtype))


def test_in_place(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_in_place(device, dtype))


def test_dlpack(dtype: Any, device: str, count: Any) -> None:
    count(cases.check_dlpack(device, dtype))


def test_host_memory(device: str, count: Any) -> None:
    count(cases.check_host_memory(device))


def test_random_bits(draw: str, device: str, count: Any) -> None:
    count(cases.check_random_bits(device))


def test_random(draw: str, device: str, count: Any) -> None:
    count(cases.check_random(device, draw))


def test_synchronize(device: str, count: Any) -> None:
    count(cases.check_synchronize(device))
