"""tensorplug: tensors and deep learning in which every device, kernel, op and derivative is a plugin.

A program written for PyTorch runs with its import changed::

    import tensorplug as tp

    x = tp.randn(3, 4, requires_grad=True)
    (x @ x.T).sum().backward()
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING as _TYPE_CHECKING

import tensorplug.autograd as autograd
from tensorplug.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tensorplug.core import Tensor, plugins
from tensorplug.core.explain import explain
from tensorplug.core.creation import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    tensor,
)
from tensorplug.core.devices import Device as device
from tensorplug.core.dtypes import DType as dtype
from tensorplug.core.dtypes import (
    bfloat16,
    can_cast,
    complex64,
    complex128,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tensorplug.core.dtypes import bool_ as bool
from tensorplug.core.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from tensorplug.core.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from tensorplug.core.kinds import default_device as get_default_device
from tensorplug.core.kinds import set_default_device
from tensorplug.core.ops import *
from tensorplug.core.printing import get_printoptions, printoptions, set_printoptions
from tensorplug.core.queries import (
    get_device,
    is_complex,
    is_floating_point,
    is_inference,
    is_nonzero,
    is_same_size,
    is_signed,
    is_storage,
    is_tensor,
    numel,
    result_type,
    typename,
)
from tensorplug.core.resolution import fallback_counts, prefer, set_fallback
from tensorplug.core.shapes import Size

from . import _namespaces

__version__ = "0.1.0.dev0"

float = float32
double = float64
half = float16
cfloat = complex64
cdouble = complex128
short = int16
int = int32
long = int64
newaxis = None

FloatTensor = _namespaces.tensor_types["FloatTensor"]
DoubleTensor = _namespaces.tensor_types["DoubleTensor"]
HalfTensor = _namespaces.tensor_types["HalfTensor"]
BFloat16Tensor = _namespaces.tensor_types["BFloat16Tensor"]
ByteTensor = _namespaces.tensor_types["ByteTensor"]
CharTensor = _namespaces.tensor_types["CharTensor"]
ShortTensor = _namespaces.tensor_types["ShortTensor"]
IntTensor = _namespaces.tensor_types["IntTensor"]
LongTensor = _namespaces.tensor_types["LongTensor"]
BoolTensor = _namespaces.tensor_types["BoolTensor"]

ops = _namespaces.OpNamespace("")

if _TYPE_CHECKING:  # at run time these are imported when they are first used
    from tensorplug import data, nn, optim, plugin, testing, utils

__getattr__ = _namespaces.find_attribute
__dir__ = _namespaces.list_attributes
