"""Neural network modules, functions and initialisers."""

from typing import TYPE_CHECKING, NoReturn

from . import plugin as _plugin  # isort: skip  # first: it registers the ops
from tensorplug.core import Tensor as _Tensor, annotation_names as _annotation_names

from . import (
    attention as attention,
    functional as functional,
    grad as grad,
    init as init,
    modules as modules,
    parallel as parallel,
    utils as utils,
)
from .hooks import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "utils",
]
__all__ += modules.__all__

_annotation_names.provide(__name__, Module=modules.Module, Tensor=_Tensor)

# Names of torch that programs may ask for.
_ABSENT = {
    "LinearCrossEntropyLoss": "a prototype of torch; Linear and CrossEntropyLoss do the same",
}

if not TYPE_CHECKING:  # type checkers are to report what is missing

    def __getattr__(name: str) -> NoReturn:
        reason = f": {_ABSENT[name]}" if name in _ABSENT else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{reason}")
