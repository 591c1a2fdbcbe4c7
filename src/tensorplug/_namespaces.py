"""What the facade finds on first use: sub-packages, a module per device type, ops of extensions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from tensorplug.core import Tensor, plugins
from tensorplug.core.device.dtypes import scalar_type
from tensorplug.core.dispatch import torch_dispatch
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor import legacy

from . import _foreach
from ._devices import DeviceModule, is_device_type

#: Sub-packages and modules that are imported when they are first used.
LAZY = frozenset(
    {
        "__config__",
        "accelerator",
        "amp",
        "array_api",
        "backends",
        "compat",
        "data",
        "distributed",
        "distributions",
        "export",
        "fft",
        "func",
        "futures",
        "fx",
        "graph",
        "hub",
        "library",
        "linalg",
        "masked",
        "multiprocessing",
        "nn",
        "onnx",
        "optim",
        "overrides",
        "plugin",
        "profiler",
        "quasirandom",
        "random",
        "return_types",
        "safetensors",
        "serialization",
        "signal",
        "sparse",
        "special",
        "storage",
        "testing",
        "torch_version",
        "types",
        "utils",
        "version",
    }
)

#: Functions that are imported, with their module, when they are first used.
LAZY_FUNCTIONS = {
    "load": "serialization",
    "save": "serialization",
    "show_config": "__config__",
    "autocast": "amp",
    **dict.fromkeys(
        (
            "clear_autocast_cache",
            "get_autocast_dtype",
            "is_autocast_cache_enabled",
            "is_autocast_enabled",
            "set_autocast_cache_enabled",
            "set_autocast_dtype",
        ),
        "amp.autocast_mode",
    ),
    "compile": "graph",
    "vmap": "func",
    "GradScaler": "amp",
    **dict.fromkeys(("Event", "Stream"), "_streams"),
    **dict.fromkeys(
        (
            "BFloat16Storage",
            "BoolStorage",
            "ByteStorage",
            "CharStorage",
            "ComplexDoubleStorage",
            "ComplexFloatStorage",
            "DoubleStorage",
            "FloatStorage",
            "HalfStorage",
            "IntStorage",
            "LongStorage",
            "ShortStorage",
            "TypedStorage",
            "UntypedStorage",
            "from_file",
        ),
        "storage",
    ),
    **dict.fromkeys(
        ("is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"), "autograd"
    ),
    # what torch has at its top level and in nn.functional
    **dict.fromkeys(
        (
            "adaptive_avg_pool1d",
            "avg_pool1d",
            "bilinear",
            "celu",
            "celu_",
            "channel_shuffle",
            "constant_pad_nd",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_tbc",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "cosine_similarity",
            "group_norm",
            "hardshrink",
            "layer_norm",
            "max_pool1d",
            "max_pool2d",
            "max_pool3d",
            "pairwise_distance",
            "pixel_shuffle",
            "pixel_unshuffle",
            "prelu",
            "rms_norm",
            "rrelu",
            "rrelu_",
            "selu",
            "selu_",
            "threshold",
            "threshold_",
        ),
        "nn.functional",
    ),
    **dict.fromkeys(
        (
            "hspmm",
            "smm",
            "sparse_bsc",
            "sparse_bsc_tensor",
            "sparse_bsr",
            "sparse_bsr_tensor",
            "sparse_compressed_tensor",
            "sparse_coo",
            "sparse_coo_tensor",
            "sparse_csc",
            "sparse_csc_tensor",
            "sparse_csr",
            "sparse_csr_tensor",
            "spmm",
            "sspaddmm",
        ),
        "sparse",
    ),
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), "nn.ops.rnn"),
    # what it has at both with other arguments
    **dict.fromkeys(
        (
            "adaptive_max_pool1d",
            "alpha_dropout",
            "batch_norm",
            "binary_cross_entropy_with_logits",
            "cosine_embedding_loss",
            "ctc_loss",
            "dropout",
            "embedding",
            "embedding_renorm_",
            "feature_alpha_dropout",
            "feature_dropout",
            "frobenius_norm",
            "get_device_module",
            "grid_sampler",
            "gru_cell",
            "hinge_embedding_loss",
            "instance_norm",
            "kl_div",
            "lstm_cell",
            "margin_ranking_loss",
            "max_pool1d_with_indices",
            "norm_except_dim",
            "nuclear_norm",
            "poisson_nll_loss",
            "triplet_margin_loss",
        ),
        "_top_level",
    ),
    "lobpcg": "_lobpcg",
    # and what comes with what its backward needs, or is a step of another
    **dict.fromkeys(
        (
            "_addmm_activation",
            "_aminmax",
            "_assert_async",
            "_assert_scalar",
            "_assert_tensor_metadata",
            "_is_all_true",
            "_is_any_true",
            "_log_softmax_backward_data",
            "_softmax_backward_data",
            "convolution",
            "embedding_bag",
            "grid_sampler_2d",
            "grid_sampler_3d",
            "native_batch_norm",
            "native_channel_shuffle",
            "native_dropout",
            "native_group_norm",
            "native_layer_norm",
            "sym_constrain_range",
            "sym_constrain_range_for_size",
        ),
        "_native",
    ),
}

#: Methods of tensors that are imported when they are first called, from ``sparse.methods``, and what they do.
LAZY_METHODS = {
    "_indices": "Return the coordinates of a sparse tensor as they are stored.",
    "_nnz": "Return how many elements a sparse tensor stores.",
    "_values": "Return the values of a sparse tensor as they are stored.",
    "ccol_indices": "Return where each column begins, of a matrix that is stored column by column.",
    "coalesce": "Return a sparse tensor with its coordinates in order, each of them once.",
    "col_indices": "Return the column of each element of a matrix that is stored row by row.",
    "crow_indices": "Return where each row begins, of a matrix that is stored row by row.",
    "dense_dim": "Return how many dimensions are stored whole: of a dense tensor all.",
    "indices": "Return the coordinates of a coalesced sparse tensor.",
    "is_coalesced": "Return whether the coordinates of a sparse tensor are in order, each of them once.",
    "resize_as_sparse_": "Give a sparse tensor the sizes of another of its layout, in place.",
    "row_indices": "Return the row of each element of a matrix that is stored column by column.",
    "smm": "Return the product of a sparse matrix and a dense one, as a sparse one.",
    "sparse_dim": "Return how many dimensions are addressed by coordinates: of a dense tensor none.",
    "sparse_mask": "Return the elements at the places of a sparse tensor, in its layout.",
    "sparse_resize_": "Give a sparse tensor another shape, in place.",
    "sparse_resize_and_clear_": "Give a sparse tensor another shape, in place, and drop its elements.",
    "sspaddmm": "Return a sum of a sparse matrix and a product, as a sparse one.",
    "to_sparse": "Return the tensor in a sparse layout, by default with coordinates.",
    "to_sparse_bsc": "Return the matrix as blocks that are stored column by column.",
    "to_sparse_bsr": "Return the matrix as blocks that are stored row by row.",
    "to_sparse_coo": "Return the tensor with the coordinates of its elements.",
    "to_sparse_csc": "Return the matrix stored column by column.",
    "to_sparse_csr": "Return the matrix stored row by row.",
    "values": "Return the stored elements of a sparse tensor.",
}


#: Methods that are ops of ``nn.functional``, imported when they are called.
METHODS_OF_NN = {
    "hardshrink": "Return x where its absolute value is above `lambd`, else zero.",
    "prelu": "Return x where it is positive, else ``weight * x``, with one weight or one per channel.",
}


def _lazy_method(name: str, doc: str, module: str) -> Callable[..., Any]:
    """Return a method that puts the function of its name in a module in its place, and calls that."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(importlib.import_module(module), name)
        setattr(Tensor, name, found)
        return found(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


for _module, _methods in (
    ("tensorplug.sparse.methods", LAZY_METHODS),
    ("tensorplug.nn.functional", METHODS_OF_NN),
):
    for _name, _doc in _methods.items():
        dispatch_state.add_method(_name, _lazy_method(_name, _doc, _module))

tensor_types = legacy.legacy_types("cpu")


def find_array_namespace(api_version: str | None) -> Any:
    """Return the namespace of the array API standard, for ``Tensor.__array_namespace__``."""
    return importlib.import_module("tensorplug.array_api").of_version(api_version)


dispatch_state.array_namespace = find_array_namespace


def find_spelling() -> Any:
    """Return how ops are spelled as torch's, for ``__torch_dispatch__``."""
    return importlib.import_module("tensorplug._overloads")


torch_dispatch.spelling = find_spelling


def find_attribute(name: str) -> Any:
    """Return what ``tp.<name>`` is, where that is found on first use."""
    package = sys.modules["tensorplug"]
    value: Any
    if name in LAZY:
        try:
            value = importlib.import_module(f"tensorplug.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tensorplug.{name}":
                raise
            raise AttributeError(f"module 'tensorplug' has no attribute {name!r}") from None
        return value
    if name in LAZY_FUNCTIONS:
        value = _function(LAZY_FUNCTIONS[name], name)
        setattr(package, name, value)
        return value
    if name.endswith("_") and hasattr(package, name.rstrip("_")) and hasattr(Tensor, name):
        return getattr(Tensor, name)  # torch has in-place methods as functions, too
    if name.startswith(_foreach.PREFIX) and name.removeprefix(_foreach.PREFIX) in _foreach.NAMES:
        value = _foreach.find(name)
        setattr(package, name, value)
        return value
    if name.startswith("_"):
        raise AttributeError(f"module 'tensorplug' has no attribute {name!r}")
    if name in tensor_types:
        return tensor_types[name]
    if is_device_type(name):
        value = DeviceModule.of(name)
        setattr(package, name, value)
        return value
    if name == "Storage":  # of the default dtype, which may change
        return getattr(package, f"{scalar_type(package.get_default_dtype())}Storage")
    why = importlib.import_module("tensorplug._absent").reason(name)
    raise AttributeError(f"module 'tensorplug' has no attribute {name!r}{why}")


def _function(module: str, name: str) -> Any:
    missing = AttributeError(f"module 'tensorplug' has no attribute {name!r}")
    try:
        found = importlib.import_module(f"tensorplug.{module}")
    except ModuleNotFoundError as error:
        if not f"tensorplug.{module}".startswith(error.name or "-"):
            raise
        raise missing from None
    try:
        return getattr(found, name)
    except AttributeError:
        raise missing from None


def list_attributes() -> list[str]:
    """Return the names that ``dir(tp)`` shows."""
    package = sys.modules["tensorplug"]
    return sorted({*vars(package), *LAZY, *LAZY_FUNCTIONS, *plugins.runtimes()} - {"annotations"})
