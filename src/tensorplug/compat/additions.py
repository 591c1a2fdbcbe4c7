"""Names that programs expect of torch and that tensorplug has no use for."""

from __future__ import annotations

import enum
import importlib
import re
import warnings
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, Self

from tensorplug import export
from tensorplug._devices import WELL_KNOWN
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import float16, float32, float64, set_default_dtype
from tensorplug.core.ops import cat, stack
from tensorplug.core.tensor.host import numpy_state
from tensorplug.distributions import Dirichlet
from tensorplug.distributions.independent import sum_rightmost
from tensorplug.distributions.transform_base import _InverseTransform
from tensorplug.distributions.utils import standard_normal
from tensorplug.futures import Future
from tensorplug.masked import reduction_identity
from tensorplug.nn import Module, grad, init, parameter
from tensorplug.nn.functional_call import functional_call
from tensorplug.nn.hooks import global_hooks
from tensorplug.nn.modules import batchnorm, transformer
from tensorplug.nn.state_dict import IncompatibleKeys
from tensorplug.nn.utils.weight_norm import _SpectralNorm, _WeightNorm
from tensorplug.sparse import hspmm, mm, sspaddmm
from tensorplug.sparse.invariants import validate_compressed, validate_coo
from tensorplug.sparse.layouts import COMPRESSED
from tensorplug.torch_version import TorchVersion

from . import compiling, environment, internals, library_names, loaders, masked_parts, utilities
from .compiling import no, nothing
from .distribution import VERSION
from .weak import WeakIdKeyDictionary


def _set_default_tensor_type(t: Any) -> None:
    """Make a legacy tensor type's dtype the default one."""
    name = t if isinstance(t, str) else getattr(t, "__name__", "")
    kinds = {"FloatTensor": float32, "DoubleTensor": float64, "HalfTensor": float16}
    short = name.rpartition(".")[2]
    if short not in kinds:
        raise TypeError(f"set_default_tensor_type(): expected one of {', '.join(kinds)}, got {t!r}")
    set_default_dtype(kinds[short])


def _sample_dirichlet(concentration: Tensor, generator: None = None) -> Tensor:
    """Draw from Dirichlet distributions; torchvision's AugMix does it by this name."""
    return Dirichlet(concentration).sample()


def _repeated(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats a number, and takes a sequence as it is."""

    def repeat(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return repeat


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    if isinstance(out_size, int):
        return out_size
    given = zip(out_size, defaults[-len(out_size) :], strict=False)
    return [default if size is None else size for size, default in given]


def _fan(tensor: Tensor, mode: str) -> int:
    """Return the number of inputs or outputs of a weight, for ``"fan_in"`` or ``"fan_out"``."""
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return init._fans(tensor)[modes.index(mode.lower())]


def _constants(name: str, values: str) -> Any:
    """Return an enumeration of which programs name values as defaults of their own functions."""
    return enum.Enum(name, values.split(), module=__name__)


class QuantStub(Module):
    """Where a quantized module would begin: what it gets is its result."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """Return what is given."""
        return x


class DeQuantStub(QuantStub):
    """Where a quantized module would end: what it gets is its result."""


class FloatFunctional(Module):
    """Arithmetic as the methods of a module, where a quantized module would observe it."""

    def forward(self, x: Any) -> Any:
        """Refuse, as torch does: the methods are what is called."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Use its methods")

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum."""
        return x + y

    add_scalar = add

    def mul(self, x: Any, y: Any) -> Any:
        """Return the product."""
        return x * y

    mul_scalar = mul

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the matrix product."""
        return x @ y

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Return the concatenation."""
        return cat(x, dim)

    def add_relu(self, x: Any, y: Any) -> Any:
        """Return the sum where it is positive, else 0."""
        return (x + y).relu()


_FSDP_CONSTANTS = {
    "ShardingStrategy": _constants(
        "ShardingStrategy", "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2"
    ),
    "StateDictType": _constants(
        "StateDictType", "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT"
    ),
    "BackwardPrefetch": _constants("BackwardPrefetch", "BACKWARD_PRE BACKWARD_POST"),
    "OptimStateKeyType": _constants("OptimStateKeyType", "PARAM_NAME PARAM_ID"),
}


def _record(function: Any = None, error_handler: Any = None) -> Any:  # torch's argument
    """Return a program's main function as it is: the launcher prints the traceback of who failed first."""
    return _record if function is None else function


_ONNX_CONSTANTS = {
    "OperatorExportTypes": _constants(
        "OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH"
    ),
    "TensorProtoDataType": _constants(
        "TensorProtoDataType",
        "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64",
    ),
    "TrainingMode": _constants("TrainingMode", "EVAL PRESERVE TRAINING"),
}


def _progress_bars() -> Any:
    """Return tqdm, or where it is not installed what iterates without a bar."""
    try:
        return importlib.import_module("tqdm").tqdm
    except ModuleNotFoundError:
        return lambda iterable, *args, **kwargs: iterable


class SummaryWriter:
    """Takes what a program reports to TensorBoard, and keeps none of it, where tensorboardX is missing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "what the program reports to TensorBoard is not kept: pip install tensorboardX to keep it",
            stacklevel=2,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


_REPORTS = """
    add_audio add_custom_scalars add_custom_scalars_marginchart add_custom_scalars_multilinechart
    add_embedding add_figure add_graph add_histogram add_histogram_raw add_hparams add_image
    add_image_with_boxes add_images add_mesh add_onnx_graph add_pr_curve add_pr_curve_raw add_scalar
    add_scalars add_tensor add_text add_video close flush
"""
# On the class itself: programs ask it for its methods, as ``unittest.mock.Mock(spec=SummaryWriter)`` does.
for _name in _REPORTS.split():
    setattr(SummaryWriter, _name, lambda self, *args, **kwargs: None)


class _CodeOnlyModule(Module):
    """A module of attributes alone; torchvision's graph modules copy themselves by it."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class _NoDType:
    """A dtype of torch's that no tensor has here: programs name it in tables of dtypes."""

    is_floating_point = is_complex = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


_NO_DTYPES = {
    name: _NoDType(name)
    for name in (
        *("qint8", "qint32", "quint8", "quint4x2", "quint2x4", "float4_e2m1fn_x2"),
        *("bit", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
        *(f"{kind}int{bits}" for kind in ("", "u") for bits in range(1, 8)),
    )
}
_INITIALIZERS = (
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal",
)  # fmt: skip


_OWN: dict[str, dict[str, Any]] = {
    "torch": {
        **_NO_DTYPES, "Future": Future, "dsmm": mm, "hsmm": hspmm, "saddmm": sspaddmm,
        "__version__": TorchVersion(VERSION), "set_default_tensor_type": _set_default_tensor_type,
        "_sample_dirichlet": _sample_dirichlet, "_validate_sparse_coo_tensor_args": validate_coo,
        "_validate_sparse_compressed_tensor_args": validate_compressed,
        **{
            f"_validate_{shown.name}_tensor_args": partial(validate_compressed, layout=shown)
            for shown in COMPRESSED
        },
    },
    "torch.__future__": {
        **dict.fromkeys(
            ("get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion"), no
        ),
        **dict.fromkeys(
            ("set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"), nothing
        ),
    },
    "torch.ao.nn.quantized": {"FloatFunctional": FloatFunctional},
    "torch.ao.quantization": {"DeQuantStub": DeQuantStub, "QuantStub": QuantStub},
    "torch.ao.quantization.fx._decomposed": {},
    "torch.autograd": {
        "_disable_profiler": nothing, "_enable_profiler": nothing, "_profiler_enabled": no,
    },
    "torch.autograd.profiler_legacy": {},
    "torch.classes": {"load_library": nothing, "loaded_libraries": set()},
    "torch.distributed": {"_pg_map": {}},
    "torch.distributed.distributed_c10d": {"_pg_map": {}},
    "torch.distributions.utils": {
        "_standard_normal": standard_normal, "_sum_rightmost": sum_rightmost
    },
    "torch.distributed._composable.fsdp": {},
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": {
        "CheckpointImpl": _constants("CheckpointImpl", "REENTRANT NO_REENTRANT")
    },
    "torch.distributed.constants": {"default_pg_timeout": timedelta(minutes=30)},
    "torch.distributed.elastic.multiprocessing.errors": {"record": _record},
    "torch.distributed.fsdp": _FSDP_CONSTANTS,
    "torch.distributed.fsdp.api": _FSDP_CONSTANTS,
    "torch.distributed.fsdp.fully_sharded_data_parallel": _FSDP_CONSTANTS,
    "torch.distributed.nn.functional": {},
    "torch.distributed.pipelining": {"SplitPoint": _constants("SplitPoint", "BEGINNING END")},
    "torch.distributed.rpc": {"is_available": no},
    "torch.distributed.rpc.api": {"_require_initialized": compiling.as_it_is},
    "torch.export.Dim": {},
    "torch._custom_ops": {},
    "torch.fx.graph_module": {
        "_CodeOnlyModule": _CodeOnlyModule, "_USER_PRESERVED_ATTRIBUTES_KEY": "_user_preserved_attributes",
    },
    "torch.hub": {"tqdm": _progress_bars()},
    "torch.utils.model_zoo": {"tqdm": _progress_bars()},
    "torch.mtia": {"is_available": no},
    "torch.serialization": {
        "DEFAULT_PROTOCOL": 2, "MAP_LOCATION": Any,
        "default_restore_location": lambda storage, location: storage.to(location),
    },
    "torch.masked": {
        "_canonical_dim": masked_parts.canonical_dim,
        "_combine_input_and_mask": masked_parts.combine_input_and_mask,
        "_input_mask": masked_parts.input_mask, "_output_mask": masked_parts.output_mask,
        "_reduction_identity": reduction_identity,
    },
    "torch.nn.functional": {"grad": grad},
    "torch.nn.init": {
        **{name: getattr(init, f"{name}_") for name in _INITIALIZERS},
        "_calculate_correct_fan": _fan, "_no_grad_normal_": init.normal_,
        "_no_grad_uniform_": init.uniform_,
    },
    "torch.nn.modules.batchnorm": {"_BatchNorm": batchnorm._BatchNorm, "_NormBase": batchnorm._Norm},
    "torch.nn.modules.instancenorm": {"_InstanceNorm": batchnorm._InstanceNorm},
    "torch.nn.modules.module": {
        "_EXTRA_STATE_KEY_SUFFIX": "_extra_state", "_IncompatibleKeys": IncompatibleKeys,
        "_global_backward_hooks": global_hooks.backward,
        "_global_backward_pre_hooks": global_hooks.backward_pre,
        "_global_buffer_registration_hooks": global_hooks.buffer_registration,
        "_global_forward_hooks": global_hooks.forward,
        "_global_forward_hooks_always_called": global_hooks.forward_always,
        "_global_forward_hooks_with_kwargs": global_hooks.forward_with_kwargs,
        "_global_forward_pre_hooks": global_hooks.forward_pre,
        "_global_module_registration_hooks": global_hooks.module_registration,
        "_global_parameter_registration_hooks": global_hooks.parameter_registration,
    },
    "torch.nn.modules.transformer": {"_get_activation_fn": transformer._function},
    "torch.nn.modules.utils": {
        "_list_with_default": _list_with_default, "_ntuple": _repeated, "_single": _repeated(1),
        "_pair": _repeated(2), "_triple": _repeated(3), "_quadruple": _repeated(4),
    },
    "torch.nn.utils.spectral_norm": {"SpectralNorm": _SpectralNorm},
    "torch.nn.utils.weight_norm": {"WeightNorm": _WeightNorm},
    "torch.nn.utils.stateless": {"_functional_call": functional_call},
    "torch.nn.parameter": {"UninitializedTensorMixin": parameter.UninitializedTensor},
    "torch.nn.quantized": {"FloatFunctional": FloatFunctional},
    "torch.numa.binding": {
        "AffinityMode": _constants("AffinityMode", "NODE SOCKET EXCLUSIVE CORE_COMPLEX")
    },
    "torch.onnx": _ONNX_CONSTANTS
    | {"is_in_onnx_export": no}
    | dict.fromkeys(("register_custom_op_symbolic", "unregister_custom_op_symbolic"), nothing),
    "torch.export": {
        "Dim": export.Dim, "ExportedProgram": export.ExportedProgram, "export": export.export,
        "load": export.load, "register_dataclass": nothing, "save": export.save,
    },
    "torch.export.dynamic_shapes": {"Dim": export.Dim},
    "torch.export.exported_program": {"ExportedProgram": export.ExportedProgram},
    "torch.onnx.symbolic_helper": {"parse_args": compiling.no_op_decorator},
    "torch.quantization": {"DeQuantStub": DeQuantStub, "QuantStub": QuantStub},
    "torch.utils.cpp_extension": {"CUDA_HOME": None, "ROCM_HOME": None, "is_ninja_available": no},
    "torch.utils.data.dataloader": {
        "_BaseDataLoaderIter": loaders.BasePass, "_DatasetKind": loaders.DatasetKind,
        "_worker_init_fn_t": Callable[[int], None],
        "_MultiProcessingDataLoaderIter": loaders.ParallelPass,
        "_SingleProcessDataLoaderIter": loaders.SerialPass, "_collate_fn_t": Callable[[list[Any]], Any],
    },
    "torch.utils.data._utils": {"MP_STATUS_CHECK_INTERVAL": 5.0},
    "torch.utils.data._utils.collate": {
        "collate_tensor_fn": lambda batch, *, collate_fn_map=None: stack(list(batch)),
        "np_str_obj_array_pattern": re.compile("[SaUO]"),
    },
    "torch.utils.data._utils.worker": {"_generate_state": numpy_state, "_worker_info": None},
    "torch.utils.weak": {
        "WeakIdKeyDictionary": WeakIdKeyDictionary,
        "WeakTensorKeyDictionary": WeakIdKeyDictionary,
    },
    "torch.distributions.transforms": {"_InverseTransform": _InverseTransform},
    "torch.utils.data": {"functional_datapipe": compiling.no_op_decorator},
    "torch.utils.tensorboard": {"SummaryWriter": SummaryWriter},
    "torch.utils.tensorboard.writer": {"SummaryWriter": SummaryWriter},
    # Programs ask for the version of a device's tools to see whether torch was built for it.
    "torch.version": {
        "__version__": TorchVersion(VERSION), "debug": False, "git_version": "", "hip": None,
    }
    | dict.fromkeys(WELL_KNOWN),
}  # fmt: skip


def _merged(*tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for table in tables:
        for module, names in table.items():
            merged.setdefault(module, {}).update(names)
    return merged


#: What is added to each module, where tensorplug does not have the name itself. A module that it
#: does not have has nothing else.
ADDITIONS = _merged(
    _OWN, compiling.ADDITIONS, environment.ADDITIONS, internals.ADDITIONS, library_names.ADDITIONS,
    utilities.ADDITIONS,
)  # fmt: skip
