"""Names that programs expect of torch and that tensorplug has no use for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

from tensorplug._devices import WELL_KNOWN
from tensorplug.core.device.dtypes import float16, float32, float64, set_default_dtype

#: The version of torch whose documentation tensorplug follows.
VERSION = "2.13.0+tensorplug"


def _as_it_is(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return a function or module as it is; with options alone, a decorator that does."""
    if obj is None:
        return lambda function: function
    return obj


def _set_default_tensor_type(t: Any) -> None:
    """Make a legacy tensor type's dtype the default one."""
    name = t if isinstance(t, str) else t.__name__
    kinds = {"FloatTensor": float32, "DoubleTensor": float64, "HalfTensor": float16}
    short = name.rpartition(".")[2]
    if short not in kinds:
        raise TypeError(f"set_default_tensor_type(): expected one of {', '.join(kinds)}, got {t!r}")
    set_default_dtype(kinds[short])


def _no() -> bool:
    return False


class SummaryWriter:
    """Takes what a program reports to TensorBoard, and keeps none of it, where tensorboardX is missing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "what the program reports to TensorBoard is not kept: pip install tensorboardX to keep it",
            stacklevel=2,
        )

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith(("add_", "flush", "close")):
            return lambda *args, **kwargs: None
        raise AttributeError(f"a SummaryWriter has no attribute {name!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def _absent(name: str) -> Any:
    """Return something that can be imported, as programs do in case they need it, but not used."""

    def absent(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"tensorplug has no counterpart of {name}")

    absent.__name__ = name.rpartition(".")[2]
    return absent


def _repeated(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats a number, and takes a sequence as it is."""

    def repeat(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return repeat


def _absent_names(module: str, *names: str) -> dict[str, Any]:
    return {name: _absent(f"{module}.{name}") for name in names}


_same: Callable[..., Any] = _as_it_is

#: What is added to each module, where tensorplug does not have the name itself. A module that it
#: does not have has nothing else.
ADDITIONS: dict[str, dict[str, Any]] = {
    "torch": {
        "__version__": VERSION,
        "compile": _same,
        "set_default_tensor_type": _set_default_tensor_type,
    },
    # Compilers change how a program runs, not what it computes; here it runs as it is written.
    "torch._dynamo": {"disable": _same, "is_compiling": _no},
    "torch.compiler": {"disable": _same, "is_compiling": _no},
    "torch.jit": {
        **dict.fromkeys(("script", "ignore", "export", "unused", "script_if_tracing"), _same),
        **dict.fromkeys(("is_scripting", "is_tracing"), _no),
    },
    "torch.distributed": {
        **dict.fromkeys(("is_available", "is_initialized"), _no),
        **_absent_names(
            "torch.distributed", "init_process_group", "destroy_process_group", "get_rank",
            "get_world_size", "barrier",
        ),
    },
    "torch.nn": _absent_names("torch.nn", "DataParallel"),
    "torch.nn.modules.utils": {
        "_ntuple": _repeated, "_single": _repeated(1), "_pair": _repeated(2), "_triple": _repeated(3)
    },
    "torch.nn.parallel": _absent_names(
        "torch.nn.parallel", "DataParallel", "DistributedDataParallel"
    ),
    "torch.onnx": _absent_names("torch.onnx", "export"),
    "torch.utils.tensorboard": {"SummaryWriter": SummaryWriter},
    # Programs ask for the version of a device's tools to see whether torch was built for it.
    "torch.version": {"__version__": VERSION, "git_version": ""}
    | dict.fromkeys(WELL_KNOWN),
}  # fmt: skip
