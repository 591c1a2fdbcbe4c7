"""The declared operators, by family, and their registration with core."""

from __future__ import annotations

from types import ModuleType

from .. import (
    operators,
    plugins,  # noqa: F401  the tables ask it for runtimes
    tensor,  # noqa: F401  Tensor receives the methods
)
from ..operators import Op
from . import contractions, copying, creation, pointwise, products, reductions, shape
from .contractions import *
from .copying import *
from .creation import *
from .pointwise import *
from .products import *
from .reductions import *
from .shape import *

FAMILIES: tuple[ModuleType, ...] = (
    copying,
    creation,
    contractions,
    products,
    pointwise,
    reductions,
    shape,
)


def declared_in(module: ModuleType) -> list[Op]:
    """Return the ops that a module declares, in the order of their definition."""
    found = {
        value.op.name: value.op
        for value in vars(module).values()
        if isinstance(getattr(value, "op", None), Op)
        and getattr(value, "__module__", None) == module.__name__
    }
    return list(found.values())


for _family in FAMILIES:
    for _op in declared_in(_family):
        operators.register_op(_op, "tensorplug")
