"""What :mod:`._namespaces` finds on first use, for type checkers: never imported.

``tests/core/test_typing.py`` compares the list with what is found, and prints what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tensorplug.core import Tensor
from tensorplug.core.tensor.legacy import TensorType

from . import (
    __config__ as __config__,
    accelerator as accelerator,
    amp as amp,
    array_api as array_api,
    backends as backends,
    compat as compat,
    data as data,
    distributed as distributed,
    distributions as distributions,
    export as export,
    fft as fft,
    func as func,
    futures as futures,
    fx as fx,
    graph as graph,
    hub as hub,
    library as library,
    linalg as linalg,
    masked as masked,
    multiprocessing as multiprocessing,
    nn as nn,
    onnx as onnx,
    optim as optim,
    overrides as overrides,
    plugin as plugin,
    profiler as profiler,
    quasirandom as quasirandom,
    random as random,
    return_types as return_types,
    safetensors as safetensors,
    serialization as serialization,
    signal as signal,
    sparse as sparse,
    special as special,
    storage as storage,
    testing as testing,
    torch_version as torch_version,
    types as types,
    utils as utils,
    version as version,
)
from .__config__ import (
    show_config as show_config,
)
from ._devices import DeviceModule
from ._lobpcg import (
    lobpcg as lobpcg,
)
from ._native import (
    _addmm_activation as _addmm_activation,
    _aminmax as _aminmax,
    _assert_async as _assert_async,
    _assert_scalar as _assert_scalar,
    _assert_tensor_metadata as _assert_tensor_metadata,
    _is_all_true as _is_all_true,
    _is_any_true as _is_any_true,
    _log_softmax_backward_data as _log_softmax_backward_data,
    _softmax_backward_data as _softmax_backward_data,
    convolution as convolution,
    embedding_bag as embedding_bag,
    grid_sampler_2d as grid_sampler_2d,
    grid_sampler_3d as grid_sampler_3d,
    native_batch_norm as native_batch_norm,
    native_channel_shuffle as native_channel_shuffle,
    native_dropout as native_dropout,
    native_group_norm as native_group_norm,
    native_layer_norm as native_layer_norm,
    sym_constrain_range as sym_constrain_range,
    sym_constrain_range_for_size as sym_constrain_range_for_size,
)
from ._streams import (
    Event as Event,
    Stream as Stream,
)
from ._top_level import (
    adaptive_max_pool1d as adaptive_max_pool1d,
    alpha_dropout as alpha_dropout,
    batch_norm as batch_norm,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss,
    ctc_loss as ctc_loss,
    dropout as dropout,
    embedding as embedding,
    embedding_renorm_ as embedding_renorm_,
    feature_alpha_dropout as feature_alpha_dropout,
    feature_dropout as feature_dropout,
    frobenius_norm as frobenius_norm,
    get_device_module as get_device_module,
    grid_sampler as grid_sampler,
    gru_cell as gru_cell,
    hinge_embedding_loss as hinge_embedding_loss,
    instance_norm as instance_norm,
    kl_div as kl_div,
    lstm_cell as lstm_cell,
    margin_ranking_loss as margin_ranking_loss,
    max_pool1d_with_indices as max_pool1d_with_indices,
    norm_except_dim as norm_except_dim,
    nuclear_norm as nuclear_norm,
    poisson_nll_loss as poisson_nll_loss,
    triplet_margin_loss as triplet_margin_loss,
)
from .amp import (
    GradScaler as GradScaler,
    autocast as autocast,
)
from .amp.autocast_mode import (
    clear_autocast_cache as clear_autocast_cache,
    get_autocast_dtype as get_autocast_dtype,
    is_autocast_cache_enabled as is_autocast_cache_enabled,
    is_autocast_enabled as is_autocast_enabled,
    set_autocast_cache_enabled as set_autocast_cache_enabled,
    set_autocast_dtype as set_autocast_dtype,
)
from .autograd import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled,
    set_anomaly_enabled as set_anomaly_enabled,
)
from .func import (
    vmap as vmap,
)
from .graph import (
    compile as compile,
)
from .nn.functional import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    avg_pool1d as avg_pool1d,
    bilinear as bilinear,
    celu as celu,
    celu_ as celu_,
    channel_shuffle as channel_shuffle,
    constant_pad_nd as constant_pad_nd,
    conv1d as conv1d,
    conv2d as conv2d,
    conv3d as conv3d,
    conv_tbc as conv_tbc,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
    cosine_similarity as cosine_similarity,
    group_norm as group_norm,
    hardshrink as hardshrink,
    layer_norm as layer_norm,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
    max_pool3d as max_pool3d,
    pairwise_distance as pairwise_distance,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
    prelu as prelu,
    rms_norm as rms_norm,
    rrelu as rrelu,
    rrelu_ as rrelu_,
    selu as selu,
    selu_ as selu_,
    threshold as threshold,
    threshold_ as threshold_,
)
from .nn.ops.rnn import (
    gru as gru,
    lstm as lstm,
    rnn_relu as rnn_relu,
    rnn_tanh as rnn_tanh,
)
from .serialization import (
    load as load,
    save as save,
)
from .sparse import (
    hspmm as hspmm,
    smm as smm,
    sparse_bsc as sparse_bsc,
    sparse_bsc_tensor as sparse_bsc_tensor,
    sparse_bsr as sparse_bsr,
    sparse_bsr_tensor as sparse_bsr_tensor,
    sparse_compressed_tensor as sparse_compressed_tensor,
    sparse_coo as sparse_coo,
    sparse_coo_tensor as sparse_coo_tensor,
    sparse_csc as sparse_csc,
    sparse_csc_tensor as sparse_csc_tensor,
    sparse_csr as sparse_csr,
    sparse_csr_tensor as sparse_csr_tensor,
    spmm as spmm,
    sspaddmm as sspaddmm,
)
from .storage import (
    BFloat16Storage as BFloat16Storage,
    BoolStorage as BoolStorage,
    ByteStorage as ByteStorage,
    CharStorage as CharStorage,
    ComplexDoubleStorage as ComplexDoubleStorage,
    ComplexFloatStorage as ComplexFloatStorage,
    DoubleStorage as DoubleStorage,
    FloatStorage as FloatStorage,
    HalfStorage as HalfStorage,
    IntStorage as IntStorage,
    LongStorage as LongStorage,
    ShortStorage as ShortStorage,
    TypedStorage as TypedStorage,
    UntypedStorage as UntypedStorage,
    from_file as from_file,
)

if TYPE_CHECKING:
    from ._devices import cuda as cuda, mps as mps, xpu as xpu

cpu: DeviceModule
meta: DeviceModule

ComplexDoubleTensor: TensorType
ComplexFloatTensor: TensorType
UInt16Tensor: TensorType
UInt32Tensor: TensorType
UInt64Tensor: TensorType

abs_ = Tensor.abs_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
add_ = Tensor.add_
addbmm_ = Tensor.addbmm_
addcdiv_ = Tensor.addcdiv_
addcmul_ = Tensor.addcmul_
addmm_ = Tensor.addmm_
addmv_ = Tensor.addmv_
addr_ = Tensor.addr_
as_strided_: Callable[..., Tensor]
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan2_ = Tensor.atan2_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
baddbmm_ = Tensor.baddbmm_
bernoulli_ = Tensor.bernoulli_
bitwise_and_ = Tensor.bitwise_and_
bitwise_left_shift_ = Tensor.bitwise_left_shift_
bitwise_not_ = Tensor.bitwise_not_
bitwise_or_ = Tensor.bitwise_or_
bitwise_right_shift_ = Tensor.bitwise_right_shift_
bitwise_xor_ = Tensor.bitwise_xor_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
conj_physical_ = Tensor.conj_physical_
copy_ = Tensor.copy_
copysign_ = Tensor.copysign_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
cumprod_ = Tensor.cumprod_
cumsum_ = Tensor.cumsum_
deg2rad_ = Tensor.deg2rad_
digamma_ = Tensor.digamma_
div_ = Tensor.div_
eq_ = Tensor.eq_
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
erfinv_ = Tensor.erfinv_
exp2_ = Tensor.exp2_
exp_ = Tensor.exp_
expm1_ = Tensor.expm1_
fill_: Callable[..., Tensor]
float_power_ = Tensor.float_power_
floor_ = Tensor.floor_
floor_divide_ = Tensor.floor_divide_
fmod_ = Tensor.fmod_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
ge_ = Tensor.ge_
gt_ = Tensor.gt_
heaviside_ = Tensor.heaviside_
hypot_ = Tensor.hypot_
i0_ = Tensor.i0_
igamma_ = Tensor.igamma_
igammac_ = Tensor.igammac_
index_add_ = Tensor.index_add_
index_copy_ = Tensor.index_copy_
index_fill_ = Tensor.index_fill_
index_put_ = Tensor.index_put_
index_reduce_ = Tensor.index_reduce_
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
le_ = Tensor.le_
lerp_ = Tensor.lerp_
lgamma_ = Tensor.lgamma_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
log_ = Tensor.log_
logical_and_ = Tensor.logical_and_
logical_not_ = Tensor.logical_not_
logical_or_ = Tensor.logical_or_
logical_xor_ = Tensor.logical_xor_
logit_ = Tensor.logit_
lt_ = Tensor.lt_
masked_fill_ = Tensor.masked_fill_
masked_scatter_ = Tensor.masked_scatter_
mul_ = Tensor.mul_
mvlgamma_ = Tensor.mvlgamma_
nan_to_num_ = Tensor.nan_to_num_
ne_ = Tensor.ne_
neg_ = Tensor.neg_
nextafter_ = Tensor.nextafter_
normal_ = Tensor.normal_
polygamma_ = Tensor.polygamma_
pow_ = Tensor.pow_
put_ = Tensor.put_
rad2deg_ = Tensor.rad2deg_
reciprocal_ = Tensor.reciprocal_
relu_ = Tensor.relu_
remainder_ = Tensor.remainder_
renorm_ = Tensor.renorm_
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
scatter_ = Tensor.scatter_
scatter_add_ = Tensor.scatter_add_
scatter_reduce_ = Tensor.scatter_reduce_
sgn_ = Tensor.sgn_
sigmoid_ = Tensor.sigmoid_
sign_ = Tensor.sign_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
squeeze_ = Tensor.squeeze_
sub_ = Tensor.sub_
t_ = Tensor.t_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
transpose_ = Tensor.transpose_
tril_ = Tensor.tril_
triu_ = Tensor.triu_
trunc_ = Tensor.trunc_
unsqueeze_ = Tensor.unsqueeze_
xlogy_ = Tensor.xlogy_
