"""Branches and loops, which run the graphs that they have as attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []

_Graph = Callable[..., tuple[Any, ...]]


def _truth(value: Any) -> bool:
    return bool(value[0] if isinstance(value, list) else value)


@operator("If", host=("cond",))
def if_(cond: Any, *, then_branch: _Graph, else_branch: _Graph) -> tuple[Any, ...]:
    return then_branch() if _truth(cond) else else_branch()


@operator("Loop", host=("M", "cond"))
def loop(
    M: Any = None, cond: Any = None, *v_initial: Any, body: _Graph, device: Any
) -> tuple[Any, ...]:
    """Run the body while its condition holds, at most M times; return the last values, then those stacked."""
    last = None if M is None else M[0] if isinstance(M, list) else M
    going = cond is None or _truth(cond)
    values = list(v_initial)
    scanned: list[list[Any]] = []
    i = 0
    while going and (last is None or i < last):
        count = tensor(i, dtype=dtype_of(7), device="cpu")
        held, *results = body(count, tensor(True, device=device), *values)
        going = _truth(held)
        values = results[: len(values)]
        if i == 0:
            scanned = [[] for _ in results[len(values) :]]
        for parts, part in zip(scanned, results[len(values) :], strict=True):
            parts.append(part)
        i += 1
    return (*values, *[ops.stack(parts) for parts in scanned])


@operator("Scan")
def scan_batches(*inputs: Any, body: _Graph, num_scan_inputs: int, directions: Any = None) -> Any:
    """In opset 8 there was a dimension of batches in front, and the first input had lengths."""
    if inputs[0] is not None or directions:
        raise NotImplementedError("Scan of opset 8 with lengths or directions")
    results = [
        scan(*[x[b] for x in inputs[1:]], body=body, num_scan_inputs=num_scan_inputs)
        for b in range(inputs[1].shape[0])
    ]
    return tuple(ops.stack(parts) for parts in zip(*results, strict=True))


@operator("Scan", since=9)
def scan(
    *inputs: Any,
    body: _Graph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Run the body over slices of the last inputs; return the last states, then the results stacked."""
    split = len(inputs) - num_scan_inputs
    states = list(inputs[:split])
    axes = scan_input_axes or [0] * num_scan_inputs
    rows = [ops.movedim(x, axis, 0) for x, axis in zip(inputs[split:], axes, strict=True)]
    backward = scan_input_directions or [0] * num_scan_inputs
    rows = [ops.flip(x, [0]) if back else x for x, back in zip(rows, backward, strict=True)]
    scanned: list[list[Tensor]] = []
    for t in range(rows[0].shape[0]):
        results = body(*states, *[x[t] for x in rows])
        states = list(results[:split])
        if t == 0:
            scanned = [[] for _ in results[split:]]
        for parts, part in zip(scanned, results[split:], strict=True):
            parts.append(part)
    stacked: list[Tensor] = []
    for i, parts in enumerate(scanned):
        if scan_output_directions and scan_output_directions[i]:
            parts.reverse()
        stacked.append(ops.stack(parts, scan_output_axes[i] if scan_output_axes else 0))
    return (*states, *stacked)


@operator("SequenceMap")
def sequence_map(input_sequence: list[Any], *additional_inputs: Any, body: _Graph) -> Any:
    results = [
        body(item, *[more[i] if isinstance(more, list) else more for more in additional_inputs])
        for i, item in enumerate(input_sequence)
    ]
    return tuple(list(column) for column in zip(*results, strict=True))
