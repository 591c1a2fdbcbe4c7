"""Objects as checkpoints hold them, drawn once and made in either library."""

from __future__ import annotations

import collections
from random import Random
from typing import Any

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "float32", "float32", "complex64", "complex128", "uint16", "uint32", "float8_e4m3fn",
)  # fmt: skip
#: What shows a part of a base: of a vector of 24 numbers.
VIEWS = (
    "whole", "part", "matrix", "transposed", "stepped", "expanded", "one", "none", "column", "base twice",
)  # fmt: skip
PLAIN = (0, -3, 2**40, 1.5, float("inf"), True, None, "name", "ä→", b"bytes", 1 + 2j, (), "")
CONTAINERS = ("dict", "dict", "OrderedDict", "list", "tuple", "numbered")
DEPTH = 3


class Plan:
    """What a seed stands for."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Random(seed)
        self.bases = [
            (draw.choice(DTYPES), [draw.randint(0, 3) for _ in range(24)])
            for _ in range(draw.randint(1, 3))
        ]
        self.count = 0
        self.form = self._container(0)

    def _form(self, depth: int) -> Any:
        draw = self.draw
        if depth < DEPTH and draw.random() < 0.4:
            return self._container(depth)
        if self.count and draw.random() < 0.1:
            return "again", draw.randrange(self.count)
        if draw.random() < 0.7:
            self.count += 1
            kind = draw.choice(("tensor", "tensor", "parameter", "leaf", "leaf", "sparse"))
            return kind, draw.randrange(len(self.bases)), draw.choice(VIEWS)
        if draw.random() < 0.2:
            return draw.choice(
                (("size", (2, 3)), ("dtype", draw.choice(DTYPES)), ("device", "cpu"))
            )
        return "plain", draw.choice(PLAIN)

    def _container(self, depth: int) -> Any:
        kind = self.draw.choice(CONTAINERS)
        return kind, [self._form(depth + 1) for _ in range(self.draw.choice((1, 2, 3, 4, 0)))]


class Maker:
    """Makes what a plan says in one of the libraries."""

    def __init__(self, lib: Any, plan: Plan) -> None:
        self.lib = lib
        self.bases = [self._base(*base) for base in plan.bases]
        self.tensors: list[Any] = []
        self.made = self.object(plan.form)

    def _base(self, dtype: str, numbers: list[int]) -> Any:
        kind = getattr(self.lib, dtype)
        return self.lib.tensor(numbers, dtype=self.lib.float32).to(kind)

    def object(self, form: Any) -> Any:
        """Return an object."""
        kind, *rest = form
        match kind:
            case "again":
                return self.tensors[rest[0] % len(self.tensors)] if self.tensors else None
            case "plain":
                return rest[0]
            case "size":
                return self.lib.Size(rest[0]) if hasattr(self.lib, "Size") else rest[0]
            case "dtype":
                return getattr(self.lib, rest[0])
            case "device":
                return self.lib.device(rest[0])
            case "dict":
                return {f"key {n}": self.object(f) for n, f in enumerate(rest[0])}
            case "OrderedDict":
                return collections.OrderedDict(
                    [(f"k.{n}", self.object(f)) for n, f in enumerate(rest[0])]
                )
            case "numbered":
                return {n: self.object(f) for n, f in enumerate(rest[0])}
            case "list":
                return [self.object(f) for f in rest[0]]
            case "tuple":
                return tuple([self.object(f) for f in rest[0]])
        made = self._tensor(kind, *rest)
        self.tensors.append(made)
        return made

    def _tensor(self, kind: str, number: int, view: str) -> Any:
        shown = self._view(self.bases[number], view)
        floating = shown.is_floating_point() and shown.dtype.itemsize > 1
        if kind == "parameter" and floating:
            return self.lib.nn.Parameter(shown)
        if kind == "leaf" and floating:
            return shown.detach().requires_grad_()
        if (
            kind == "sparse"
            and shown.dtype in (self.lib.float32, self.lib.float64)
            and shown.ndim == 2
        ):
            return shown.to_sparse()
        return shown

    def _view(self, base: Any, view: str) -> Any:
        match view:
            case "part":
                return base[3:9]
            case "matrix":
                return base.view(4, 6)
            case "transposed":
                return base.view(4, 6).t()
            case "stepped":
                return base[1::3]
            case "expanded":
                return base[5:6].expand(2, 3)
            case "one":
                return base[7]
            case "none":
                return base[4:4]
            case "column":
                return base.view(2, 3, 4)[:, 1, 2:]
            case "base twice":
                return base.view(2, 12)
        return base
