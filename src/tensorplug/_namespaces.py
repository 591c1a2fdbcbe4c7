"""What the facade finds on first use: sub-packages, a module per device type, ops of extensions."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tensorplug.core import Tensor, plugins
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor import creation

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
        "distributions",
        "fft",
        "func",
        "futures",
        "hub",
        "linalg",
        "masked",
        "multiprocessing",
        "nn",
        "optim",
        "overrides",
        "plugin",
        "profiler",
        "quasirandom",
        "random",
        "safetensors",
        "serialization",
        "signal",
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
    "vmap": "func",
    "GradScaler": "amp",
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
            "conv1d",
            "conv2d",
            "conv3d",
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
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), "nn.ops.rnn"),
}

tensor_types = creation.legacy_types("cpu")


def find_array_namespace(api_version: str | None) -> Any:
    """Return the namespace of the array API standard, for ``Tensor.__array_namespace__``."""
    return importlib.import_module("tensorplug.array_api").of_version(api_version)


dispatch_state.array_namespace = find_array_namespace


class OpNamespace:
    """Ops by their registered name: ``tp.ops.add``, ``tp.ops.package.name`` for an extension's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.add(tp.tensor([1]), 2)
    tensor([3])
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        if op_registry.has_op(full):
            return op_registry.get_op(full).call
        if not self._prefix:
            plugins.load_device("extension")
        if any(op.name.startswith(f"{full}.") for op in op_registry.all_ops()):
            return OpNamespace(f"{full}.")
        try:
            return op_registry.get_op(full).call
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def load_library(self, path: Any) -> None:
        """Answer for a library of compiled ops, if a plugin brings its ops: torchvision's.

        Raises
        ------
        OSError
            If none does, as torch raises where a library does not fit it.
        """
        torchvision = importlib.import_module("tensorplug.compat.torchvision")
        torchvision.load(path)

    def __dir__(self) -> list[str]:
        start = len(self._prefix)
        names = [
            op.name[start:] for op in op_registry.all_ops() if op.name.startswith(self._prefix)
        ]
        return sorted({name.partition(".")[0] for name in names})


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
    if name.endswith("_") and op_registry.has_op(name.rstrip("_")) and hasattr(Tensor, name):
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
    raise AttributeError(f"module 'tensorplug' has no attribute {name!r}")


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
