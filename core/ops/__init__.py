"""The declared operators, by family, and their registration with core."""

from __future__ import annotations

from types import ModuleType

from .. import (
    operators,
    plugins,  # noqa: F401  the tables ask it for runtimes
    tensor,  # noqa: F401  Tensor receives the methods
)
from ..operators import Op
from . import (
    joining,
    indexing,
    bitwise,
    comparison,
    contractions,
    copying,
    creation,
    cumulative,
    elementary,
    norms,
    pointwise,
    products,
    reductions,
    rounding,
    selection,
    shape,
    softmaxes,
    sorting,
    statistics,
)
from .bitwise import *
from .comparison import *
from .contractions import *
from .copying import *
from .creation import *
from .cumulative import *
from .elementary import *
from .norms import *
from .pointwise import *
from .products import *
from .reductions import *
from .rounding import *
from .selection import *
from .shape import *
from .indexing import *
from .joining import *
from .softmaxes import *
from .sorting import *
from .statistics import *

FAMILIES: tuple[ModuleType, ...] = (
    copying,
    creation,
    contractions,
    products,
    pointwise,
    reductions,
    shape,
    joining,
    indexing,
    softmaxes,
    cumulative,
    sorting,
    statistics,
    norms,
    elementary,
    rounding,
    selection,
    comparison,
    bitwise,
)

# What `from tensorplug.core.ops import *` gives; type checkers read this form.
__all__: list[str] = []
__all__ += copying.__all__
__all__ += creation.__all__
__all__ += contractions.__all__
__all__ += products.__all__
__all__ += pointwise.__all__
__all__ += reductions.__all__
__all__ += shape.__all__
__all__ += joining.__all__
__all__ += indexing.__all__
__all__ += softmaxes.__all__
__all__ += cumulative.__all__
__all__ += sorting.__all__
__all__ += statistics.__all__
__all__ += norms.__all__
__all__ += elementary.__all__
__all__ += rounding.__all__
__all__ += selection.__all__
__all__ += comparison.__all__
__all__ += bitwise.__all__


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

from .. import indexing as _keys  # noqa: E402, F401  gives Tensor its __getitem__
