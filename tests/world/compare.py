"""Comparison of what a program gave on torch and on tensorplug."""

from __future__ import annotations

import math
from typing import Any


class Comparison:
    """What differs between two results, and to how many digits the rest agrees."""

    def __init__(self, expected: Any, actual: Any, digits: float) -> None:
        self.required = digits
        self.numbers = 0
        self.digits = 15.0
        self.differences: list[str] = []
        self._compare(expected, actual, "", 0.0)

    def _compare(self, expected: Any, actual: Any, where: str, size: float) -> None:
        if isinstance(expected, dict) and isinstance(actual, dict):
            if expected.keys() != actual.keys():
                self.differences.append(f"{where}: {sorted(expected)} is not {sorted(actual)}")
                return
            sizes = {}
            if "weighted" in expected:  # a tensor: elements and sums are compared on its scale
                norm, count = expected["norm"], math.prod(expected["shape"])
                sizes = {"first": norm / math.sqrt(max(1, count)), "weighted": norm}
            for key, value in expected.items():
                self._compare(value, actual[key], f"{where}.{key}", sizes.get(key, 0.0))
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                self.differences.append(f"{where}: {len(expected)} values, not {len(actual)}")
                return
            for number, (one, other) in enumerate(zip(expected, actual, strict=True)):
                self._compare(one, other, f"{where}[{number}]", size)
        elif isinstance(expected, float) and isinstance(actual, float):
            self._number(expected, actual, where, size)
        else:
            self.numbers += 1
            if expected != actual or type(expected) is not type(actual):
                self.differences.append(f"{where}: {actual!r}, with torch {expected!r}")

    def _number(self, expected: float, actual: float, where: str, size: float) -> None:
        self.numbers += 1
        if expected == actual or (math.isnan(expected) and math.isnan(actual)):
            return
        # Elements are compared on the scale of their tensor, other numbers on their own; tiny ones absolutely.
        error = abs(expected - actual) / max(abs(expected), size, 1e-2)
        digits = -math.log10(error) if math.isfinite(error) and error else 0.0
        self.digits = min(self.digits, digits)
        if not digits >= self.required:
            self.differences.append(f"{where}: {actual!r}, with torch {expected!r}")
