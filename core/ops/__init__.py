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
    polynomials,
    bessel,
    gamma,
    error_functions,
    numeric,
    bitwise,
    comparison,
    contractions,
    copying,
    creation,
    cumulative,
    differences,
    distances,
    distributions,
    elementary,
    histograms,
    indexing,
    joining,
    norms,
    pointwise,
    products,
    quantiles,
    random,
    reductions,
    rounding,
    searching,
    selection,
    sets,
    shape,
    softmaxes,
    sorting,
    statistics,
    linalg_factors,
    linalg_functions,
    linalg_norms,
    linalg_solvers,
    linalg_spectra,
)
from .bitwise import *
from .comparison import *
from .contractions import *
from .copying import *
from .creation import *
from .cumulative import *
from .differences import *
from .distances import *
from .distributions import *
from .elementary import *
from .histograms import *
from .indexing import *
from .joining import *
from .norms import *
from .pointwise import *
from .products import *
from .quantiles import *
from .random import *
from .reductions import *
from .rounding import *
from .searching import *
from .selection import *
from .sets import *
from .shape import *
from .polynomials import *
from .bessel import *
from .gamma import *
from .error_functions import *
from .numeric import *
from .softmaxes import *
from .sorting import *
from .statistics import *
from .linalg_factors import *
from .linalg_functions import *
from .linalg_norms import *
from .linalg_solvers import *
from .linalg_spectra import *

FAMILIES: tuple[ModuleType, ...] = (
    copying,
    creation,
    contractions,
    products,
    pointwise,
    reductions,
    shape,
    polynomials,
    bessel,
    gamma,
    error_functions,
    numeric,
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
    sets,
    searching,
    histograms,
    quantiles,
    differences,
    distances,
    random,
    distributions,
    linalg_factors,
    linalg_functions,
    linalg_norms,
    linalg_solvers,
    linalg_spectra,
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
__all__ += sets.__all__
__all__ += searching.__all__
__all__ += histograms.__all__
__all__ += quantiles.__all__
__all__ += differences.__all__
__all__ += distances.__all__
__all__ += random.__all__
__all__ += distributions.__all__
__all__ += linalg_factors.__all__
__all__ += linalg_functions.__all__
__all__ += linalg_norms.__all__
__all__ += linalg_solvers.__all__
__all__ += linalg_spectra.__all__


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
