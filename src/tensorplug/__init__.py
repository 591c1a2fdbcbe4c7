"""Tensors and deep learning in which every device, kernel, op and derivative is a plugin.

A program written for PyTorch runs with its import changed::

    import tensorplug as tp

    x = tp.randn(3, 4, requires_grad=True)
    (x @ x.T).sum().backward()
"""

from __future__ import annotations

import typing as _typing
from math import (
    e as e,
    inf as inf,
    nan as nan,
    pi as pi,
)

from tensorplug.autograd import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from tensorplug.core import (
    Tensor as Tensor,
    plugins as plugins,
)
from tensorplug.core.device.device import (
    Device as _Device,
)
from tensorplug.core.device.dtypes import (
    DType as _DType,
    bfloat16 as bfloat16,
    bool_ as _bool,
    can_cast as can_cast,
    complex32 as complex32,
    complex64 as complex64,
    complex128 as complex128,
    finfo as finfo,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    promote_types as promote_types,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from tensorplug.core.device.generator import (
    Generator as Generator,
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)
from tensorplug.core.dispatch.explain import (
    explain as explain,
)
from tensorplug.core.dispatch.fallback import (
    fallback_counts as fallback_counts,
    set_fallback as set_fallback,
)
from tensorplug.core.dispatch.keys import (
    default_device as _default_device,
    set_default_device as set_default_device,
)
from tensorplug.core.dispatch.resolution import (
    prefer as prefer,
)
from tensorplug.core.errors import (
    OutOfMemoryError as OutOfMemoryError,
)
from tensorplug.core.ops import *
from tensorplug.core.tensor.creation import (
    as_tensor as as_tensor,
    asarray as asarray,
    from_dlpack as from_dlpack,
    from_numpy as from_numpy,
    frombuffer as frombuffer,
    tensor as tensor,
)
from tensorplug.core.tensor.layout import (
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    contiguous_format as contiguous_format,
    layout as layout,
    memory_format as memory_format,
    preserve_format as preserve_format,
    strided as strided,
)
from tensorplug.core.tensor.predicates import (
    get_device as get_device,
    is_complex as is_complex,
    is_floating_point as is_floating_point,
    is_inference as is_inference,
    is_nonzero as is_nonzero,
    is_same_size as is_same_size,
    is_signed as is_signed,
    is_storage as is_storage,
    is_tensor as is_tensor,
    numel as numel,
    result_type as result_type,
    typename as typename,
)
from tensorplug.core.tensor.printing import (
    get_printoptions as get_printoptions,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
)
from tensorplug.core.tensor.shapes import (
    Size as Size,
)

from . import _einops, _namespaces, autograd as autograd
from ._ops import OpNamespace as _OpNamespace
from ._settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    compiled as compiled,
    get_deterministic_debug_mode as get_deterministic_debug_mode,
    get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_interop_threads as get_num_interop_threads,
    get_num_threads as get_num_threads,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled as is_warn_always_enabled,
    set_deterministic_debug_mode as set_deterministic_debug_mode,
    set_float32_matmul_precision as set_float32_matmul_precision,
    set_flush_denormal as set_flush_denormal,
    set_num_interop_threads as set_num_interop_threads,
    set_num_threads as set_num_threads,
    set_warn_always as set_warn_always,
    use_deterministic_algorithms as use_deterministic_algorithms,
)

__version__ = "0.1.0.dev0"

device = _Device
dtype = _DType
get_default_device = _default_device
bool = _bool
float = float32
double = float64
half = float16
chalf = complex32
cfloat = complex64
cdouble = complex128
short = int16
int = int32
long = int64
newaxis = None

FloatTensor = _namespaces.tensor_types["FloatTensor"]
DoubleTensor = _namespaces.tensor_types["DoubleTensor"]
HalfTensor = _namespaces.tensor_types["HalfTensor"]
ComplexHalfTensor = _namespaces.tensor_types["ComplexHalfTensor"]
BFloat16Tensor = _namespaces.tensor_types["BFloat16Tensor"]
ByteTensor = _namespaces.tensor_types["ByteTensor"]
CharTensor = _namespaces.tensor_types["CharTensor"]
ShortTensor = _namespaces.tensor_types["ShortTensor"]
IntTensor = _namespaces.tensor_types["IntTensor"]
LongTensor = _namespaces.tensor_types["LongTensor"]
BoolTensor = _namespaces.tensor_types["BoolTensor"]

ops = _OpNamespace("")

if _typing.TYPE_CHECKING:  # at run time these are imported when they are first used
    from ._declared import *
    from ._declared import __config__ as __config__
else:  # type checkers are to report what is missing
    __getattr__ = _namespaces.find_attribute

_einops.install()
__dir__ = _namespaces.list_attributes
