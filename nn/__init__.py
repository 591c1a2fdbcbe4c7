"""Neural network modules, functions and initialisers."""

from . import plugin as _plugin  # first: it registers the ops  # isort: skip
from . import functional as functional
from . import init as init
from . import modules as modules
from . import utils as utils
from .hooks import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .module import Module
from .modules.container import ModuleDict, ModuleList, Sequential
from .modules.flatten import Flatten, Unflatten
from .modules.linear import Bilinear, Identity, Linear
from .modules.parameter_container import ParameterDict, ParameterList
from .parameter import Buffer, Parameter

__all__ = [
    "Bilinear",
    "Buffer",
    "Flatten",
    "Identity",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "Unflatten",
    "functional",
    "init",
    "modules",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "utils",
]
