"""The declared operators, by family, and their registration with core."""

from __future__ import annotations

from types import ModuleType as _ModuleType

from .. import (
    calls,  # what is declared below becomes callable there
    operators as _operators,
    plugins as _plugins,  # the tables ask it for runtimes
    tensor as _tensor,  # Tensor receives the methods
)
from ..operators import Op as _Op
from . import (
    bessel,
    bitwise,
    comparison,
    complex_numbers,
    contractions,
    copying,
    creation,
    creation_like,
    cumulative,
    differences,
    dimension_order,
    distances,
    distributions,
    division,
    einstein_sums,
    elementary,
    error_functions,
    expansion,
    extremes,
    fourier,
    fourier_dimensions,
    gamma,
    gathering,
    grids,
    histograms,
    indexing,
    interpolation,
    joining,
    linalg_factors,
    linalg_functions,
    linalg_lowrank,
    linalg_lu,
    linalg_norms,
    linalg_solvers,
    linalg_spectra,
    linalg_triangular,
    masks,
    norms,
    numeric,
    pointwise,
    polynomials,
    powers,
    products,
    quantiles,
    random,
    random_like,
    rearranging,
    reductions,
    rounding,
    searching,
    selection,
    sequences,
    sets,
    shape,
    short_time,
    shorthands,
    slices,
    softmaxes,
    sorting,
    splitting,
    statistics,
    strided,
    triangles,
    trigonometry,
    windows,
    windows_signal,
)

# Before the lines with `*`, which may bring an op that is called as a family is.
FAMILIES: tuple[_ModuleType, ...] = (
    copying,
    creation,
    creation_like,
    sequences,
    contractions,
    einstein_sums,
    products,
    pointwise,
    interpolation,
    powers,
    division,
    reductions,
    extremes,
    shape,
    dimension_order,
    expansion,
    splitting,
    rearranging,
    grids,
    triangles,
    strided,
    gathering,
    masks,
    slices,
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
    trigonometry,
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
    random_like,
    distributions,
    linalg_factors,
    linalg_functions,
    linalg_lu,
    linalg_norms,
    linalg_solvers,
    linalg_spectra,
    linalg_triangular,
    fourier,
    fourier_dimensions,
    complex_numbers,
    windows,
    windows_signal,
    short_time,
    linalg_lowrank,
    shorthands,
)

from .bessel import *
from .bitwise import *
from .comparison import *
from .complex_numbers import *
from .contractions import *
from .copying import *
from .creation import *
from .creation_like import *
from .cumulative import *
from .differences import *
from .dimension_order import *
from .distances import *
from .distributions import *
from .division import *
from .einstein_sums import *
from .elementary import *
from .error_functions import *
from .expansion import *
from .extremes import *
from .fourier import *
from .fourier_dimensions import *
from .gamma import *
from .gathering import *
from .grids import *
from .histograms import *
from .indexing import *
from .interpolation import *
from .joining import *
from .linalg_factors import *
from .linalg_functions import *
from .linalg_lowrank import *
from .linalg_lu import *
from .linalg_norms import *
from .linalg_solvers import *
from .linalg_spectra import *
from .linalg_triangular import *
from .masks import *
from .norms import *
from .numeric import *
from .pointwise import *
from .polynomials import *
from .powers import *
from .products import *
from .quantiles import *
from .random import *
from .random_like import *
from .rearranging import *
from .reductions import *
from .rounding import *
from .searching import *
from .selection import *
from .sequences import *
from .sets import *
from .shape import *
from .short_time import *
from .shorthands import *
from .slices import *
from .softmaxes import *
from .sorting import *
from .splitting import *
from .statistics import *
from .strided import *
from .triangles import *
from .trigonometry import *
from .windows import *

# What `from tensorplug.core.ops import *` gives. Type checkers follow the lines with `*` above; an `__all__`
# that is put together from others, said openly, would hide all of it from them.
globals()["__all__"] = [name for family in FAMILIES for name in family.__all__]


def declared_in(module: _ModuleType) -> list[_Op]:
    """Return the ops that a module declares, in the order of their definition."""
    found = {
        value.op.name: value.op
        for value in vars(module).values()
        if isinstance(getattr(value, "op", None), _Op)
        and getattr(value, "__module__", None) == module.__name__
    }
    return list(found.values())


for _family in FAMILIES:
    for _op in declared_in(_family):
        _operators.register_op(_op, "tensorplug")

from .. import indexing as _keys, resizing as _resizing  # methods of Tensor
