"""Attention by cuDNN's scaled dot product: one graph per shapes, layouts and options."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._cupy import cp
from ..dtypes import name_of
from .cudnn_graphs import DATA_TYPES, deterministic, enabled, handle_of, library, steps


class _Graph(NamedTuple):
    graph: Any
    tensors: tuple[Any, ...]
    workspace: int


_graphs: dict[Any, _Graph | None] = {}
_lock = threading.Lock()


def forward(arrays: Sequence[Any], bias: Any | None, is_causal: bool, scale: float) -> bool:
    """Write attention into the last two of `arrays`; return False where cuDNN cannot.

    Parameters
    ----------
    arrays : sequence of array
        Query, key, value, output (batch, heads, length, size), and logarithms (batch, heads, length, 1).
    bias : array, optional
        What is added to the scores, (batch or 1, heads or 1, length, length of the keys).
    is_causal : bool
        Whether position i sees positions up to i only.
    scale : float
        What the products of query and key are multiplied by.
    """
    return _run("forward", arrays, (), bias, is_causal, scale)


def backward(
    arrays: Sequence[Any], results: Sequence[Any], bias: Any | None, is_causal: bool, scale: float
) -> bool:
    """Write the gradients of query, key and value into `results`; return False where cuDNN cannot.

    Parameters
    ----------
    arrays : sequence of array
        Query, key, value, output, the output's gradient, and the logarithms.
    """
    return _run("backward", arrays, results, bias, is_causal, scale)


def allowed() -> bool:
    """Return whether the user leaves cuDNN's attention on."""
    told = getattr(sys.modules.get("tensorplug.backends"), "cuda", None)
    return told is None or bool(told.cudnn_sdp_enabled())


def _run(
    kind: str,
    arrays: Sequence[Any],
    results: Sequence[Any],
    bias: Any | None,
    is_causal: bool,
    scale: float,
) -> bool:
    first = arrays[0]
    if name_of(first) not in ("float16", "bfloat16"):
        return False
    if first.shape[-1] % 8 or arrays[2].shape[-1] % 8:
        return False
    if not enabled() or not allowed() or library() is None:
        return False
    device = first.device.id
    given = [*arrays, *results, *([] if bias is None else [bias])]
    layouts = tuple([(array.shape, array.strides) for array in given])
    exact = deterministic()
    key = (kind, device, name_of(first), layouts, bias is not None, is_causal, scale, exact)
    handle = handle_of(device)
    if key not in _graphs:
        with _lock:
            if key not in _graphs:
                _graphs[key] = _built(kind, handle, arrays, results, bias, is_causal, scale, exact)
    found = _graphs[key]
    if found is None:
        return False
    workspace = cp.empty(max(found.workspace, 1), "uint8")
    bound = {tensor: array.data.ptr for tensor, array in zip(found.tensors, given, strict=True)}
    found.graph.execute(bound, workspace.data.ptr, handle=handle)
    return True


def _built(
    kind: str,
    handle: Any,
    arrays: Sequence[Any],
    results: Sequence[Any],
    bias: Any | None,
    is_causal: bool,
    scale: float,
    exact: bool,
) -> _Graph | None:
    """Return a graph that is ready to run, or None if cuDNN has no engine for it."""
    cudnn = library()
    try:
        graph, tensors = described(
            cudnn, handle, kind, arrays, results, bias, is_causal, scale, exact
        )
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
    except cudnn.cudnnGraphNotSupportedError:
        return None
    return _Graph(graph, tensors, graph.get_workspace_size())


def described(
    cudnn: Any,
    handle: Any,
    kind: str,
    arrays: Sequence[Any],
    results: Sequence[Any],
    bias: Any | None,
    is_causal: bool,
    scale: float,
    exact: bool,
) -> tuple[Any, tuple[Any, ...]]:
    """Return the graph, and its tensors in the order of `arrays`, `results` and the bias."""
    data = getattr(cudnn.data_type, DATA_TYPES[name_of(arrays[0])])
    single = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        io_data_type=data, intermediate_data_type=single, compute_data_type=single, handle=handle
    )

    def tensor(name: str, array: Any, data_type: Any = data) -> Any:
        return graph.tensor(
            name=name, dim=list(array.shape), stride=steps(array), data_type=data_type
        )

    def output(symbol: Any, array: Any, data_type: Any = data) -> Any:
        symbol.set_output(True).set_data_type(data_type)
        return symbol.set_dim(list(array.shape)).set_stride(steps(array))

    options: dict[str, Any] = {"attn_scale": scale}
    if is_causal:
        options["diagonal_alignment"] = cudnn.diagonal_alignment.TOP_LEFT
        options["diagonal_band_right_bound"] = 0
    added = [] if bias is None else [tensor("bias", bias)]
    if bias is not None:
        options["bias"] = added[0]
    inputs = [tensor(name, array) for name, array in zip("qkv", arrays, strict=False)]
    if kind == "forward":
        attended, stats = graph.sdpa(
            q=inputs[0], k=inputs[1], v=inputs[2], generate_stats=True, **options
        )
        outputs = [output(attended, arrays[3]), output(stats, arrays[4], single)]
        return graph, (*inputs, *outputs, *added)
    inputs += [tensor(name, array) for name, array in zip(("o", "dO"), arrays[3:5], strict=True)]
    inputs.append(tensor("stats", arrays[5], single))
    names = ("q", "k", "v", "o", "dO", "stats")
    gradients = graph.sdpa_backward(
        **dict(zip(names, inputs, strict=True)), use_deterministic_algorithm=exact, **options
    )
    outputs = [output(symbol, array) for symbol, array in zip(gradients, results, strict=True)]
    return graph, (*inputs, *outputs, *added)
