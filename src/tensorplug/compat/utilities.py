"""What programs import of ``torch.utils``, of its types and settings, and that tensorplug has elsewhere."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import sys
import tempfile
import traceback
import types
import warnings
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from tensorplug import storage
from tensorplug._ops import OpOverload
from tensorplug.amp import autocast_mode, grad_scaler
from tensorplug.autograd import Function
from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import DType, float16, float32, float64, int64
from tensorplug.core.tensor.shapes import Size
from tensorplug.data.pinning import pin
from tensorplug.distributions import Binomial
from tensorplug.futures import Future
from tensorplug.nn import functional, init
from tensorplug.nn.ops.rnn import check_states
from tensorplug.profiler import ProfilerActivity
from tensorplug.sparse import sparse_coo_tensor

from .compiling import as_it_is, no, nothing, unchanged


def _cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """Call one of two functions."""
    return (true_fn if pred else false_fn)(*operands)


def _while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """Call a function on its own results as long as another returns True."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        carried = tuple(body_fn(*carried))
    return carried


def _assert_allclose(
    actual: Any,
    expected: Any,
    rtol: Any = None,
    atol: Any = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare as ``torch.testing.assert_close`` does, types and devices aside."""
    warnings.warn(
        "assert_allclose is deprecated; use torch.testing.assert_close", FutureWarning, stacklevel=2
    )
    if not isinstance(actual, Tensor):
        actual = Tensor(actual)
    if not isinstance(expected, Tensor):
        expected = Tensor(expected)
    importlib.import_module("tensorplug.testing").assert_close(
        actual, expected.to(actual.dtype), rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=False,
        msg=msg or None,
    )  # fmt: skip


class InplaceFunction(Function):
    """A function that may write into its input, as ``inplace`` says."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


def _check_version(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Return whether a module is of a version, or of a later one."""
    try:
        found = tuple(map(int, module.__version__.split(".")[: len(req_version_tuple)]))
    except ValueError as error:
        message = f"'{module.__name__}' module version is malformed: {module.__version__!r}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}; assuming it is not old", stacklevel=2)
        return True
    return found >= req_version_tuple


@contextlib.contextmanager
def _temporary_directory() -> Generator[str, None, None]:
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that compares by what it refers to, not by what that equals."""

    def __init__(self, key: Any, callback: Any = None, /) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, others = self(), other() if isinstance(other, WeakIdRef) else None
        return mine is others if mine is not None and others is not None else self is other


_T = TypeVar("_T")


def _or_tuple(kind: Any, *items: Any) -> Any:
    """Return the type of a value, or of a tuple of values."""
    return kind | types.GenericAlias(tuple, items or (kind, ...))


_SIZES: dict[str, Any] = {
    **{f"_size_{count}_t": _or_tuple(int, *[int] * count) for count in range(1, 7)},
    **{f"_size_{count}_opt_t": _or_tuple(int | None, *[int | None] * count) for count in (2, 3)},
    **{f"_ratio_{count}_t": _or_tuple(float, *[float] * count) for count in (2, 3)},
    "_ratio_any_t": _or_tuple(float),
    "_size_any_t": _or_tuple(int),
    "_size_any_opt_t": _or_tuple(int | None),
    "_maybe_indices_t": _or_tuple(Tensor, Tensor, Tensor),
    "_tensor_list_t": Tensor | list[Tensor],
    "_scalar_or_tuple_any_t": _or_tuple(_T),
}

_TRITON = (
    "has_datacenter_blackwell_tma_device", "has_triton", "has_triton_experimental_host_tma",
    "has_triton_package", "has_triton_stable_tma_api", "has_triton_tensor_descriptor_host_tma",
    "has_triton_tma", "has_triton_tma_device",
)  # fmt: skip
_SKIPPED_GUARDS = (
    "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
)  # fmt: skip
_ATTENTION = ("can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention")


def _all(entries: Sequence[Any]) -> list[bool]:
    return [True] * len(entries)


def _cell(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the step of a recurrent layer."""

    def step(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        check_states("rnn_cell()", input, hx)
        return function(functional.linear(input, w_ih, b_ih) + functional.linear(hx, w_hh, b_hh))

    return step


def _sparse_type(name: str, dtype: DType) -> type:
    """Return torch's legacy class of sparse tensors of a dtype; nothing is an instance of it."""

    def make(cls: type, indices: Any, values: Any, size: Any = None) -> Any:
        return sparse_coo_tensor(indices, values, size, dtype=dtype)

    return type(f"{name}Tensor", (), {"__new__": make})


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


ADDITIONS: dict[str, dict[str, Any]] = {
    "torch": {
        "AcceleratorError": type("AcceleratorError", (RuntimeError,), {}),
        "cond": _cond,
        "while_loop": _while_loop,
        "dropout_": lambda input, p, train: functional.dropout(input, p, train, inplace=True),
        "alpha_dropout_": lambda input, p, train: functional.alpha_dropout(input, p, train, inplace=True),
        "feature_dropout_": lambda input, p, train: functional.dropout2d(input, p, train, inplace=True),
        "binomial": lambda count, prob, generator=None: Binomial(count, prob).sample(),
        "rnn_relu_cell": _cell(functional.relu),
        "rnn_tanh_cell": _cell(functional.tanh),
        "has_lapack": True, "has_mkl": False, "has_openmp": False, "has_spectral": True,
        "is_distributed": no, "is_vulkan_available": no, "init_num_threads": nothing,
        "resize_as_": lambda input, the_template, **_: input.resize_(the_template.shape),
        "fork": lambda function, *args, **kwargs: function(*args, **kwargs),
        "wait": as_it_is,
        **{
            f"set_autocast_{kind}_dtype": lambda dtype, device=device: autocast_mode.set_autocast_dtype(
                device, dtype
            )
            for kind, device in (("cpu", "cpu"), ("gpu", "cuda"))
        },
    },
    "torch._higher_order_ops": {"cond": _cond, "while_loop": _while_loop},
    "torch._higher_order_ops.cond": {"cond": _cond},
    "torch._higher_order_ops.while_loop": {"while_loop": _while_loop},
    "torch.amp.autocast_mode": dict(vars(autocast_mode)),
    "torch.cuda.amp.autocast_mode": dict(vars(autocast_mode)),
    "torch.cuda.amp.grad_scaler": dict(vars(grad_scaler)),
    "torch.cuda.amp": {"amp_definitely_not_available": lambda: True},
    "torch.cuda.amp.common": {"amp_definitely_not_available": lambda: True},
    "torch.autograd": {"ProfilerActivity": ProfilerActivity},
    "torch.autograd.function": {"FunctionMeta": type, "InplaceFunction": InplaceFunction},
    "torch.autograd.graph": {
        "RemovableHandle": RemovableHandle,
        "set_override_stale_capture_stream": nothing,
        "set_warn_on_accumulate_grad_stream_mismatch": nothing,
    },
    "torch.backends.cuda": {
        **dict.fromkeys(
            (*_ATTENTION, "is_ck_sdpa_available", "is_flash_attention_available",
             "allow_fp16_bf16_reduction_math_sdp", "fp16_bf16_reduction_math_sdp_allowed"),
            no,
        ),
        **dict.fromkeys(("blas_workspace_size", "cublas_workspace_size", "cublaslt_workspace_size"), _zero),
        **dict.fromkeys(
            ("preferred_blas_library", "preferred_linalg_library", "preferred_rocm_fa_library"),
            lambda backend=None: "default",
        ),
        "cufft_plan_cache": types.SimpleNamespace(size=0, max_size=0, clear=nothing),
    },
    "torch.backends.mps": {"get_core_count": _zero, "get_name": str, "is_macos13_or_newer": no},
    "torch.compiler": {
        **dict.fromkeys(_SKIPPED_GUARDS, _all),
        "config": types.SimpleNamespace(patch=unchanged),
        "get_default_backend": lambda: "inductor",
        "set_default_backend": nothing,
    },
    "torch.cpu": {"get_capabilities": dict},
    "torch.func": {"debug_unwrap": lambda tensor, *, recurse=True: tensor},
    "torch.fx.immutable_collections": {"immutable_dict": dict, "immutable_list": list},
    "torch.hub": {
        "DEFAULT_CACHE_DIR": "~/.cache", "ENV_GITHUB_TOKEN": "GITHUB_TOKEN", "ENV_TORCH_HOME": "TORCH_HOME",
        "ENV_XDG_CACHE_HOME": "XDG_CACHE_HOME", "MODULE_HUBCONF": "hubconf.py", "READ_DATA_CHUNK": 1 << 17,
        "VAR_DEPENDENCY": "dependencies",
    },
    "torch.jit": {
        "Future": Future,
        "ScriptWarning": type("ScriptWarning", (Warning,), {}),
        "TracingCheckError": type("TracingCheckError", (Exception,), {}),
        "optimized_execution": unchanged,
        "set_module": lambda obj, mod: setattr(obj, "__module__", mod),
        "strict_fusion": unchanged,
    },
    "torch.library": {"OpOverload": OpOverload},
    "torch.nn.attention": {
        **dict.fromkeys(_ATTENTION, no),
        "WARN_FOR_UNFUSED_KERNELS": False,
        "current_flash_attention_impl": nothing,
        "list_flash_attention_impls": list,
        "restore_flash_attention_impl": nothing,
    },
    "torch.nn.common_types": {**_SIZES, "T": _T, "Tensor": Tensor},
    "torch.nn.init": {"sparse": init.sparse_},
    "torch.random": {"thread_safe_generator": nothing},
    "torch.serialization": {
        "SourceChangeWarning": type("SourceChangeWarning", (Warning,), {}),
        "StorageType": storage.UntypedStorage,
        "check_module_version_greater_or_equal": _check_version,
        "location_tag": lambda storage: str(storage.device),
        "mkdtemp": _temporary_directory,
        **dict.fromkeys(("validate_cuda_device", "validate_hpu_device"), lambda location: location),
    },
    "torch.sparse": {
        f"{name}Tensor": _sparse_type(name, dtype)
        for name, dtype in (("Double", float64), ("Float", float32), ("Half", float16), ("Long", int64))
    },
    "torch.testing": {"assert_allclose": _assert_allclose},
    "torch.types": {"Size": Size, "Storage": storage.UntypedStorage, "Tensor": Tensor},
    "torch.utils": {
        "get_cpp_backtrace": lambda *args: "".join(traceback.format_stack(sys._getframe(1))),
        "set_module": lambda obj, mod: setattr(obj, "__module__", mod),
    },
    "torch.utils._triton": dict.fromkeys(_TRITON, no),
    "torch.utils.data._utils.pin_memory": {"pin_memory": lambda data, device=None: pin(data)},
    "torch.utils.data.backward_compatibility": {"worker_init_fn": nothing},
    "torch.utils.weak": {"TensorWeakRef": weakref.ref, "WeakIdRef": WeakIdRef},
}  # fmt: skip
