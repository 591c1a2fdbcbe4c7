"""The modules, by family."""

from .container import ModuleDict, ModuleList, Sequential
from .flatten import Flatten, Unflatten
from .linear import Bilinear, Identity, Linear
from .parameter_container import ParameterDict, ParameterList

__all__ = [
    "Bilinear",
    "Flatten",
    "Identity",
    "Linear",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "Unflatten",
]
