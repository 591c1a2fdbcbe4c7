"""Convolutions by cuDNN: one graph per shapes, layouts and options, kept for the next call.

The front end's package imports without a GPU and without the library itself; so whether cuDNN can be used is
known when a handle has been made.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tensorplug.plugin import Shape, deterministic_wanted

from .._cupy import cp
from ..dtypes import name_of

DATA_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}


class Options(NamedTuple):
    """What a convolution has beside its arrays, one number per dimension each."""

    stride: Shape
    padding: Shape
    dilation: Shape


class _Graph(NamedTuple):
    graph: Any
    tensors: tuple[Any, Any, Any]  # two inputs and the output
    workspace: int


_handles = threading.local()  # a handle has one stream, so each thread has its own
_graphs: dict[Any, _Graph | None] = {}
_lock = threading.Lock()


@cache
def library() -> Any:
    """Return the front end, or None where it or the library is not installed."""
    if importlib.util.find_spec("cudnn") is None:
        return None
    try:
        module = importlib.import_module("cudnn")
        module.backend_version()
    except (ImportError, OSError, RuntimeError):
        return None
    return module


def handle_of(device: int) -> Any:
    """Return this thread's handle of a device, on the current stream."""
    cudnn = library()
    known = _handles.__dict__.setdefault("by_device", {})
    if device not in known:
        known[device] = cudnn.create_handle()
    cudnn.set_stream(handle=known[device], stream=cp.cuda.get_current_stream().ptr)
    return known[device]


def allows_tf32() -> bool:
    """Return whether the user allows TensorFloat-32 in convolutions."""
    facade = sys.modules.get("tensorplug")
    switches = vars(sys.modules.get("tensorplug.backends", facade)).get("cudnn")
    return bool(switches is not None and switches.allow_tf32)


def enabled() -> bool:
    """Return whether the user leaves cuDNN on."""
    facade = sys.modules.get("tensorplug")
    switches = vars(sys.modules.get("tensorplug.backends", facade)).get("cudnn")
    return switches is None or bool(switches.enabled)


def deterministic() -> bool:
    """Return whether engines have to give the same result each time."""
    facade = sys.modules.get("tensorplug")
    switches = vars(sys.modules.get("tensorplug.backends", facade)).get("cudnn")
    return deterministic_wanted() or (switches is not None and bool(switches.deterministic))


def convolve(kind: str, first: Any, second: Any, output: Any, options: Options) -> bool:
    """Write a convolution, or an adjoint of it, into `output`; return False where cuDNN cannot.

    Parameters
    ----------
    kind : {"conv_fprop", "conv_dgrad", "conv_wgrad"}
        Forward; the gradient of the input; the gradient of the weight.
    first, second : array
        Input and weight; output's gradient and weight; input and output's gradient.
    output : array
        Where to. All three with two or three spatial dimensions, in any dense layout.
    """
    if name_of(first) not in DATA_TYPES or not enabled() or library() is None:
        return False
    device = first.device.id
    exact, repeatable = not allows_tf32(), deterministic()
    layouts = tuple([(array.shape, array.strides) for array in (first, second, output)])
    key = (kind, device, name_of(first), layouts, options, exact, repeatable)
    handle = handle_of(device)
    if key not in _graphs:
        with _lock:
            if key not in _graphs:
                arrays = (first, second, output)
                _graphs[key] = _built(kind, handle, arrays, options, exact, repeatable)
    found = _graphs[key]
    if found is None:
        return False
    workspace = cp.empty(max(found.workspace, 1), "uint8")
    pointers = [array.data.ptr for array in (first, second, output)]
    bound = dict(zip(found.tensors, pointers, strict=True))
    found.graph.execute(bound, workspace.data.ptr, handle=handle)
    return True


def _built(
    kind: str,
    handle: Any,
    arrays: tuple[Any, Any, Any],
    options: Options,
    exact: bool,
    repeatable: bool,
) -> _Graph | None:
    """Return a graph that is ready to run, or None if cuDNN has no engine for it."""
    cudnn = library()
    try:
        graph, tensors = described(cudnn, handle, kind, arrays, options)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        if exact and name_of(arrays[0]) == "float32":
            graph.deselect_numeric_notes([cudnn.numerical_note.TENSOR_CORE])
        if repeatable:
            graph.deselect_numeric_notes([cudnn.numerical_note.NONDETERMINISTIC])
        graph.check_support()
        graph.build_plans()
    except cudnn.cudnnGraphNotSupportedError:
        return None
    return _Graph(graph, tensors, graph.get_workspace_size())


def described(
    cudnn: Any, handle: Any, kind: str, arrays: tuple[Any, Any, Any], options: Options
) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return the graph of one convolution, and its inputs and output."""
    name = name_of(arrays[0])
    data = getattr(cudnn.data_type, DATA_TYPES[name])
    compute = cudnn.data_type.DOUBLE if name == "float64" else cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        io_data_type=data,
        intermediate_data_type=compute,
        compute_data_type=compute,
        handle=handle,
    )
    names = {
        "conv_fprop": ("image", "weight"),
        "conv_dgrad": ("loss", "filter"),
        "conv_wgrad": ("image", "loss"),
    }[kind]
    inputs = [
        graph.tensor(name=label, dim=list(array.shape), stride=steps(array), data_type=data)
        for label, array in zip(names, arrays, strict=False)
    ]
    operation: Callable[..., Any] = getattr(graph, kind)
    output = operation(
        **dict(zip(names, inputs, strict=True)),
        pre_padding=list(options.padding),
        post_padding=list(options.padding),
        stride=list(options.stride),
        dilation=list(options.dilation),
    )
    output.set_output(True).set_data_type(data)
    output.set_dim(list(arrays[2].shape)).set_stride(steps(arrays[2]))
    return graph, (inputs[0], inputs[1], output)


def steps(array: Any) -> list[int]:
    """Return the strides of an array in elements."""
    return [stride // array.itemsize for stride in array.strides]
