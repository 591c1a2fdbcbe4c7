"""Methods that errors name by the class that users know, not by the private base that defines them."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def name_methods(classes: dict[str, Any]) -> None:
    """Give each module a constructor and a ``forward`` of its own name, not a private base's."""
    for name, cls in classes.items():
        for method in ("__init__", "forward"):
            defined = next((base for base in cls.__mro__ if method in vars(base)), cls)
            if not defined.__name__.startswith("_"):
                continue
            shared = vars(defined)[method]
            own = FunctionType(
                shared.__code__, shared.__globals__, method, shared.__defaults__, shared.__closure__
            )
            own.__kwdefaults__ = shared.__kwdefaults__
            own.__annotations__ = shared.__annotations__
            own.__doc__, own.__module__ = shared.__doc__, shared.__module__
            own.__qualname__ = f"{name}.{method}"
            setattr(cls, method, own)
