"""The declared operators, by family, and their registration with core."""

from __future__ import annotations

import sys as _sys

from .. import plugins as _plugins
from ..dispatch import calls, op_registry as _operators
from ..tensor import tensor as _tensor
from .arithmetic import *
from .bitwise import *
from .clamp import *
from .comparison import *
from .complex import *
from .copying import *
from .creation import *
from .cumulative import *
from .differences import *
from .distances import *
from .elementary import *
from .exports import declared_in as declared_in, exported as _exported
from .fft import *
from .indexing import *
from .joining import *
from .linalg import *
from .masking import *
from .matmul import *
from .norms import *
from .numeric import *
from .random import *
from .rearranging import *
from .reductions import *
from .shape import *
from .shape.copies import *
from .shorthands import *
from .softmax import *
from .sorting import *
from .special import *
from .statistics import *
from .strided import *
from .triangles import *

# What `from tensorplug.core.ops import *` gives. Type checkers follow the lines with `*` above; an `__all__`
# that is put together from others, said openly, would hide all of it from them.
globals()["__all__"] = list(dict.fromkeys(_exported(__name__)))

for _op in declared_in(_sys.modules[__name__]):
    _operators.register_op(_op, "tensorplug")

from ..tensor import indexing as _keys, resizing as _resizing  # methods of Tensor
from . import expanded_writes as _expanded_writes
