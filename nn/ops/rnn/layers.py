"""All steps of one layer in one direction; between two there is a product with the weight of the states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import cat, stack, zeros_like

from ..linear import linear
from .cells import conjugates, gru_cell, gru_cell_backward, lstm_cell, lstm_cell_backward

if TYPE_CHECKING:
    from tensorplug.core import Tensor


# One node of the graph: the weights get one product of all steps, not a sum of products.


def _layer_rule(count: int) -> Callable[..., None]:
    """Return the rule of a layer whose cells have `count` gates per element of the state."""

    def rule(inputs: Any, reverse: bool) -> None:
        gates, _, state = inputs[:3]
        if gates._shape[2] != count * state._shape[1]:
            raise RuntimeError(
                f"expected {count} gates per element of the state {list(state._shape)}, "
                f"got {list(gates._shape)}"
            )

    return rule


def _order(steps: int, reverse: bool) -> list[int]:
    """Return the steps in the order in which they are made."""
    return list(reversed(range(steps)) if reverse else range(steps))


def _before(first: Any, all_steps: Any, reverse: bool) -> Any:
    """Return what each step began with, given what the steps ended with."""
    first = first.unsqueeze(0)
    return cat([all_steps[1:], first] if reverse else [first, all_steps[:-1]])


def _weight_gradient(g_own: Any, before: Any) -> Any:
    return g_own.flatten(0, 1).t() @ before.flatten(0, 1)


@composite(
    shapes="inputs.0(L, N, G), inputs.1(G, H), inputs.2(N, H), inputs.3(N, H)",
    rule=_layer_rule(4),
    method=False,
    outputs="output, states, own",
)
def lstm_layer(inputs: Sequence[Tensor], reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return what all steps of one layer and direction of an LSTM give.

    Parameters
    ----------
    inputs : sequence of four Tensor
        The input's part of the gates with all biases (L, N, 4 H), in the order input, forget, cell, output;
        weight_hh (4 H, H); the first hidden and cell states (N, H).
    reverse : bool
        Whether the last step is made first.

    Returns
    -------
    output, states, own : Tensor
        The hidden and the cell states (L, N, H), and the state's part of the gates (L, N, 4 H).
    """
    gates, weight, hidden, cell = inputs
    made: list[Any] = [None] * gates._shape[0]
    for t in _order(len(made), reverse):
        own = linear(hidden, weight)
        hidden, cell = lstm_cell([gates[t], own, cell])
        made[t] = hidden, cell, own
    output, states, owns = (stack(list(some)) for some in zip(*made, strict=True))
    return output, states, owns


@composite(
    shapes="g_output(L, N, H), g_states(L, N, H), g_own(L, N, G), inputs.0(L, N, G), inputs.1(G, H), "
    "inputs.2(N, H), inputs.3(N, H), results.0(L, N, H), results.1(L, N, H), results.2(L, N, G)",
    method=False,
    outputs="g_gates, g_weight, g_hidden, g_cell",
)
def lstm_layer_backward(
    g_output: Tensor,
    g_states: Tensor,
    g_own: Tensor,
    inputs: Sequence[Tensor],
    reverse: bool,
    results: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the inputs of :func:`lstm_layer`, given its `results`."""
    gates, weight, hidden, cell = inputs
    output, states, own = results
    cells = _before(cell, states, reverse)
    made: list[Any] = [None] * gates._shape[0]
    g_hidden, g_cell = zeros_like(hidden), zeros_like(cell)
    for t in _order(len(made), not reverse):
        g_gates, g_cell = lstm_cell_backward(
            g_output[t] + g_hidden, g_states[t] + g_cell, [gates[t], own[t], cells[t]], states[t]
        )
        g_hidden = (g_gates + g_own[t]) @ weight
        made[t] = g_gates
    g_all = stack(made)
    return (
        g_all,
        _weight_gradient(g_all + g_own, _before(hidden, output, reverse)),
        g_hidden,
        g_cell,
    )


@composite(
    shapes="inputs.0(L, N, G), inputs.1(G, H), inputs.2(N, H), inputs.3(G)",
    rule=_layer_rule(3),
    method=False,
    outputs="output, own",
)
def gru_layer(inputs: Sequence[Tensor], reverse: bool) -> tuple[Tensor, Tensor]:
    """Return what all steps of one layer and direction of a GRU give.

    Parameters
    ----------
    inputs : sequence of four Tensor
        The input's part of the gates (L, N, 3 H), in the order reset, update, new; weight_hh (3 H, H); the
        first states (N, H); bias_hh (3 H,).
    reverse : bool
        Whether the last step is made first.

    Returns
    -------
    output, own : Tensor
        The states (L, N, H), and the state's part of the gates (L, N, 3 H).
    """
    gates, weight, hidden, bias = inputs
    made: list[Any] = [None] * gates._shape[0]
    for t in _order(len(made), reverse):
        own = linear(hidden, weight, bias)
        hidden = gru_cell([gates[t], own, hidden])
        made[t] = hidden, own
    output, owns = (stack(list(some)) for some in zip(*made, strict=True))
    return output, owns


@composite(
    shapes="g_output(L, N, H), g_own(L, N, G), inputs.0(L, N, G), inputs.1(G, H), inputs.2(N, H), "
    "inputs.3(G), results.0(L, N, H), results.1(L, N, G)",
    method=False,
    outputs="g_gates, g_weight, g_hidden, g_bias",
)
def gru_layer_backward(
    g_output: Tensor,
    g_own: Tensor,
    inputs: Sequence[Tensor],
    reverse: bool,
    results: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the inputs of :func:`gru_layer`, given its `results`."""
    gates, weight, hidden, _ = inputs
    output, own = results
    before = _before(hidden, output, reverse)
    made: list[Any] = [None] * gates._shape[0]
    g_hidden = zeros_like(hidden)
    for t in _order(len(made), not reverse):
        g_gates, g_state, g_direct = gru_cell_backward(
            g_output[t] + g_hidden, [gates[t], own[t], before[t]]
        )
        g_state = g_state + g_own[t]
        g_hidden = g_direct + g_state @ weight
        made[t] = g_gates, g_state
    g_all, g_state = (stack(list(some)) for some in zip(*made, strict=True))
    return g_all, _weight_gradient(g_state, before), g_hidden, g_state.sum((0, 1))


def _lstm_layer(
    g_output: Any, g_states: Any, g_own: Any, inputs: Any, reverse: bool, output: Any, states: Any, own: Any
) -> list[Any]:  # fmt: skip
    results = conjugates([output, states, own])
    return list(
        lstm_layer_backward(g_output, g_states, g_own, conjugates(inputs), reverse, results)
    )


def _gru_layer(
    g_output: Any, g_own: Any, inputs: Any, reverse: bool, output: Any, own: Any
) -> list[Any]:
    results = conjugates([output, own])
    return list(gru_layer_backward(g_output, g_own, conjugates(inputs), reverse, results))


DERIVATIVES = [
    derivative("lstm_layer", inputs=_lstm_layer),
    derivative("gru_layer", inputs=_gru_layer),
]
