"""Names that programs expect of torch and that tensorplug has no use for."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import tensorplug as tp

#: The version of torch whose documentation tensorplug follows.
VERSION = "2.13.0+tensorplug"


def _as_it_is(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return a function or module as it is; with options alone, a decorator that does."""
    if obj is None:
        return lambda function: function
    return obj


def _variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """Return the tensor: what ``Variable`` did, every tensor does."""
    return data.requires_grad_() if requires_grad else data


def _set_default_tensor_type(t: Any) -> None:
    """Make a legacy tensor type's dtype the default one."""
    name = t if isinstance(t, str) else t.__name__
    kinds = {"FloatTensor": tp.float32, "DoubleTensor": tp.float64, "HalfTensor": tp.float16}
    short = name.rpartition(".")[2]
    if short not in kinds:
        raise TypeError(f"set_default_tensor_type(): expected one of {', '.join(kinds)}, got {t!r}")
    tp.set_default_dtype(kinds[short])


def _no() -> bool:
    return False


class SummaryWriter:
    """Takes what a program reports to TensorBoard, and keeps none of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "torch.utils.tensorboard has no counterpart: what the program reports is not kept",
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


def _module(name: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(members)
    return module


_same: Callable[..., Any] = _as_it_is

_DISTRIBUTED = (
    "init_process_group",
    "destroy_process_group",
    "get_rank",
    "get_world_size",
    "barrier",
)
_PARALLEL = ("DataParallel", "DistributedDataParallel")

#: Modules that may lack a counterpart, and of which a part does no harm.
MODULES: dict[str, Any] = {
    # Compilers change how a program runs, not what it computes; here it runs as it is written.
    "torch.jit": _module(
        "torch.jit",
        script=_same, ignore=_same, export=_same, unused=_same, script_if_tracing=_same,
        is_scripting=_no, is_tracing=_no,
    ),
    "torch.compiler": _module("torch.compiler", disable=_same, is_compiling=_no),
    "torch._dynamo": _module("torch._dynamo", disable=_same, is_compiling=_no),
    "torch.version": _module("torch.version", __version__=VERSION, cuda=None, hip=None, git_version=""),
    "torch.utils.tensorboard": _module("torch.utils.tensorboard", SummaryWriter=SummaryWriter),
    "torch.distributed": _module(
        "torch.distributed",
        is_available=_no,
        is_initialized=_no,
        **{name: _absent(f"torch.distributed.{name}") for name in _DISTRIBUTED},
    ),
    "torch.nn.modules.utils": _module(
        "torch.nn.modules.utils",
        _ntuple=_repeated, _single=_repeated(1), _pair=_repeated(2), _triple=_repeated(3),
    ),
    "torch.onnx": _module("torch.onnx", export=_absent("torch.onnx.export")),
    "torch.nn.parallel": _module(
        "torch.nn.parallel", **{name: _absent(f"torch.nn.parallel.{name}") for name in _PARALLEL}
    ),
    "torch.autograd.variable": _module("torch.autograd.variable", Variable=_variable),
}  # fmt: skip

ADDITIONS: dict[str, dict[str, Any]] = {
    "torch": {
        "__version__": VERSION,
        "compile": _same,
        "set_default_tensor_type": _set_default_tensor_type,
    },
    "torch.autograd": {"Variable": _variable},
    "torch.nn": {"DataParallel": _absent("torch.nn.DataParallel")},
}
