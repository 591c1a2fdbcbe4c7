"""Recurrent networks, and what their cells do with the gates between the matrix products.

The gates of a cell come in two parts, the input's and the state's, and nothing of them is kept but these:
the derivatives compute the activations once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dispatch.op_registry import Delegated, composite, composite_like
from tensorplug.core.ops import cat, stack, zeros_like
from tensorplug.core.ops.rules import check_tensor

from .dropout import dropout as drop
from .linear import linear

if TYPE_CHECKING:
    from tensorplug.core import Tensor

    States = tuple[Tensor, ...]
    Step = Callable[[Any, Any, Any, Any], Any]


def _check_gates(count: int, inputs: Any) -> None:
    """Raise unless there are so many gates for each element of the state."""
    gates, _, state = inputs
    if gates._shape[1] != count * state._shape[1]:
        raise RuntimeError(
            f"expected {count} gates per element of the state {list(state._shape)}, got {list(gates._shape)}"
        )


def _check_lstm(inputs: Any) -> None:
    _check_gates(4, inputs)


def _check_lstm_backward(g_hidden: Any, g_state: Any, inputs: Any, state: Any) -> None:
    _check_gates(4, inputs)


def _check_gru(inputs: Any) -> None:
    _check_gates(3, inputs)


def _check_gru_backward(g: Any, inputs: Any) -> None:
    _check_gates(3, inputs)


@composite(
    shapes="inputs.0(N, G), inputs.1(N, G), inputs.2(N, H)",
    rule=_check_lstm,
    method=False,
    outputs="hidden, state",
)
def lstm_cell(inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the next hidden and cell states of an LSTM.

    Parameters
    ----------
    inputs : sequence of three Tensor
        The input's part of the gates (N, 4 H), in the order input, forget, cell, output; the state's part
        (N, 4 H); the cell state (N, H).

    Returns
    -------
    hidden, state : Tensor
        (N, H).
    """
    gates, own, cell = [t.contiguous() for t in inputs]  # results lie row by row
    i, f, g, o = (gates + own).chunk(4, 1)
    state = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * state.tanh(), state


@composite(
    shapes="g_hidden(N, H), g_state(N, H), inputs.0(N, G), inputs.1(N, G), inputs.2(N, H), state(N, H)",
    rule=_check_lstm_backward,
    method=False,
    outputs="g_gates, g_cell",
)
def lstm_cell_backward(
    g_hidden: Tensor, g_state: Tensor, inputs: Sequence[Tensor], state: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of both parts of the gates, which are the same, and of the cell state."""
    gates, own, cell = [t.contiguous() for t in inputs]  # results lie row by row
    i, f, g, o = (gates + own).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    shown = state.tanh()
    total = g_state + g_hidden * o * (1 - shown * shown)
    g_gates = cat(
        [
            total * g * i * (1 - i),
            total * cell * f * (1 - f),
            total * i * (1 - g * g),
            g_hidden * shown * o * (1 - o),
        ],
        1,
    )
    return g_gates, total * f


@composite(shapes="inputs.0(N, G), inputs.1(N, G), inputs.2(N, H)", rule=_check_gru, method=False)
def gru_cell(inputs: Sequence[Tensor]) -> Tensor:
    """Return the next state of a GRU.

    Parameters
    ----------
    inputs : sequence of three Tensor
        The input's part of the gates (N, 3 H), in the order reset, update, new; the state's part (N, 3 H);
        the state (N, H).

    Returns
    -------
    Tensor
        (N, H).
    """
    gates, own, hidden = [t.contiguous() for t in inputs]
    r_in, z_in, n_in = gates.chunk(3, 1)
    r_own, z_own, n_own = own.chunk(3, 1)
    n = (n_in + (r_in + r_own).sigmoid() * n_own).tanh()
    return n + (z_in + z_own).sigmoid() * (hidden - n)


@composite(
    shapes="g(N, H), inputs.0(N, G), inputs.1(N, G), inputs.2(N, H)",
    rule=_check_gru_backward,
    method=False,
    outputs="g_gates, g_own, g_hidden",
)
def gru_cell_backward(g: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the two parts of the gates, and of the state."""
    gates, own, hidden = [t.contiguous() for t in inputs]
    r_in, z_in, n_in = gates.chunk(3, 1)
    r_own, z_own, n_own = own.chunk(3, 1)
    r, z = (r_in + r_own).sigmoid(), (z_in + z_own).sigmoid()
    n = (n_in + r * n_own).tanh()
    g_new = g * (1 - z) * (1 - n * n)
    g_reset = g_new * n_own * r * (1 - r)
    g_update = g * (hidden - n) * z * (1 - z)
    return cat([g_reset, g_update, g_new], 1), cat([g_reset, g_update, g_new * r], 1), g * z


# --- all steps of a layer ---------------------------------------------------------------------------
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


# --- one step, given the input's part of the gates (N, gates * H) -----------------------------------


def lstm_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next hidden and cell states; the gates come as input, forget, cell, output."""
    hidden, cell = state
    return lstm_cell([gates, linear(hidden, weight, bias), cell])


def gru_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next state; the gates come as reset, update, new."""
    (hidden,) = state
    return (gru_cell([gates, linear(hidden, weight, bias), hidden]),)


def tanh_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next state of a simple cell with tanh."""
    return ((gates + linear(state[0], weight, bias)).tanh(),)


def relu_step(gates: Any, weight: Any, state: States, bias: Any) -> States:
    """Return the next state of a simple cell with relu."""
    return ((gates + linear(state[0], weight, bias)).relu(),)


# --- all steps of all layers ------------------------------------------------------------------------


def run_layers(
    step: Step,
    rows: Any,
    sizes: list[int],
    states: Sequence[Any],
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, ...]:
    """Run all layers over packed rows.

    Parameters
    ----------
    step : callable
        One step of the cell.
    rows : Tensor
        The rows of all steps, one step after the other.
    sizes : list of int
        How many rows each step has, not increasing.
    states : sequence of Tensor
        The first states, (num_layers * directions, N, H).
    params, has_biases, num_layers, bidirectional
        As for :func:`lstm`.
    dropout : float
        The share of each layer's output, but the last's, that is dropped now.

    Returns
    -------
    output, *last : Tensor
        The last layer's rows, and the last states.
    """
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    last: list[list[Any]] = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            output, final = _scan(
                step,
                rows,
                sizes,
                tuple([state[index] for state in states]),
                params[index * each : (index + 1) * each],
                has_biases,
                bool(direction),
            )
            outputs.append(output)
            for collected, state in zip(last, final, strict=True):
                collected.append(state)
        rows = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
        if dropout and layer < num_layers - 1:
            rows = drop(rows, dropout, True)
    return rows, *[stack(collected) for collected in last]


def _scan(
    step: Step,
    rows: Any,
    sizes: list[int],
    first: States,
    params: Sequence[Any],
    has_biases: bool,
    reverse: bool,
) -> tuple[Any, States]:
    """Run one layer in one direction."""
    weight_ih, weight_hh = params[:2]
    bias_ih, bias_hh = params[2:4] if has_biases else (None, None)
    project = params[-1] if len(params) % 2 else None
    if step in _LAYERS and project is None and sizes[-1] == sizes[0]:
        return _LAYERS[step](rows, len(sizes), first, params[:4], has_biases, reverse)
    # The input's part of the gates, for all steps at once.
    gates = linear(rows, weight_ih, bias_ih)
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    state: Any = first
    finished: list[States] = []  # forwards: states of the sequences that have ended
    outputs: list[Any] = [None] * len(sizes)
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        size = sizes[t]
        here = state[0].shape[0]
        if reverse:
            before = sizes[t + 1] if t + 1 < len(sizes) else 0
            if before == 0:
                state = tuple([s[:size] for s in first])
            elif size > before:  # sequences that end here begin here
                state = tuple([cat([s, f[before:size]]) for s, f in zip(state, first, strict=True)])
        elif size < here:
            finished.append(tuple([s[size:] for s in state]))
            state = tuple([s[:size] for s in state])
        state = step(gates[starts[t] : starts[t + 1]], weight_hh, state, bias_hh)
        if project is not None:
            state = (linear(state[0], project), *state[1:])
        outputs[t] = state[0]
    if finished:
        parts = [state, *reversed(finished)]
        state = tuple([cat([part[i] for part in parts]) for i in range(len(state))])
    return cat(outputs), state


def _lstm_steps(
    rows: Any, steps: int, first: States, params: Any, has_biases: bool, reverse: bool
) -> tuple[Any, States]:
    """Run one layer of an LSTM in one direction, all sequences being of one length."""
    weight_ih, weight_hh = params[:2]
    gates = linear(rows, weight_ih, params[2] + params[3] if has_biases else None)
    gates = gates.unflatten(0, (steps, first[0].shape[0]))
    output, states, _ = lstm_layer([gates, weight_hh, *first], reverse)
    last = 0 if reverse else steps - 1
    return output.flatten(0, 1), (output[last], states[last])


def _gru_steps(
    rows: Any, steps: int, first: States, params: Any, has_biases: bool, reverse: bool
) -> tuple[Any, States]:
    """Run one layer of a GRU in one direction, all sequences being of one length."""
    weight_ih, weight_hh = params[:2]
    bias_ih, bias_hh = params[2:] if has_biases else (None, weight_hh.new_zeros(weight_hh.shape[0]))
    gates = linear(rows, weight_ih, bias_ih)
    gates = gates.unflatten(0, (steps, first[0].shape[0]))
    output, _ = gru_layer([gates, weight_hh, *first, bias_hh], reverse)
    return output.flatten(0, 1), (output[0 if reverse else steps - 1],)


_LAYERS: dict[Any, Any] = {lstm_step: _lstm_steps, gru_step: _gru_steps}


def _run(
    step: Step, input: Any, states: Sequence[Any], params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Run all layers over sequences of one length."""
    x = input.transpose(0, 1) if batch_first else input
    length, n, features = x.shape
    output, *last = run_layers(
        step,
        x.reshape(length * n, features),
        [n] * length,
        states,
        params,
        has_biases,
        num_layers,
        dropout if train else 0.0,
        bidirectional,
    )
    output = output.reshape(length, n, output.shape[1])
    return output.transpose(0, 1) if batch_first else output, *last


def _canonical(
    name: str, step: Step, input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Check a call; with dropout, whose numbers no kernel is asked for, return the loop's results."""
    check_tensor(input, name)
    if input.ndim != 3:
        raise ValueError(f"{name}(): Expected input to be 3D, got {input.ndim}D instead")
    if input.shape[1 if batch_first else 0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    count = num_layers * (2 if bidirectional else 1)
    states: list[Any] = list(hx) if name == "lstm" else [hx]
    if name == "lstm" and len(states) != 2:
        raise RuntimeError(f"{name} expects two hidden states")
    n = input.shape[0 if batch_first else 1]
    for state in states:
        check_tensor(state, name, "hx")
        if state.ndim != 3 or state.shape[0] != count or state.shape[1] != n:
            raise RuntimeError(
                f"{name}(): Expected hidden size {(count, n, '*')}, got {list(state.shape)}"
            )
    projected = states[0].shape[2] != states[-1].shape[2]
    wanted = count * ((4 if has_biases else 2) + projected)
    params = list(params)
    if len(params) != wanted:
        raise RuntimeError(f"{name}(): expected {wanted} parameters, got {len(params)}")
    options = bool(train), bool(bidirectional), bool(batch_first)
    if dropout and train and num_layers > 1:
        return Delegated(
            _run(step, input, states, params, has_biases, num_layers, dropout, *options)
        )
    given = states if name == "lstm" else hx
    return input, given, params, bool(has_biases), num_layers, 0.0, *options


def _rule(name: str, step: Step) -> Callable[..., Any]:
    def rule(
        input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        return _canonical(
            name, step, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first,
        )  # fmt: skip

    return rule


@composite(rule=_rule("lstm", lstm_step), outputs="output, hidden, state", method=False)
def lstm(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the outputs and the last states of an LSTM, see :class:`tensorplug.nn.LSTM`.

    A kernel is called where nothing is dropped, with a `dropout` of zero.

    Parameters
    ----------
    input : Tensor
        (L, N, F), or (N, L, F) with `batch_first`.
    hx : sequence of two Tensor
        The first hidden and cell states, (num_layers * directions, N, H); hidden states of another size
        are projected to it.
    params : sequence of Tensor
        Of each layer and direction: weight_ih, weight_hh, with `has_biases` bias_ih and bias_hh, and
        weight_hr where hidden states are projected.
    has_biases : bool
        Whether there are biases.
    num_layers : int
        Layers, each on top of the one before.
    dropout : float
        The share of each layer's output, but the last's, that is dropped with `train`.
    train : bool
        Whether the call is part of training.
    bidirectional : bool
        Whether each layer also runs backwards, and outputs both.
    batch_first : bool
        Whether `input` and the outputs are (N, L, *).

    Returns
    -------
    output, hidden, state : Tensor
        The last layer's hidden states of all steps, and the last states of all layers.

    Raises
    ------
    RuntimeError
        If shapes, or the number of parameters, do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> states = [tp.zeros(1, 2, 4), tp.zeros(1, 2, 4)]
    >>> params = [tp.ones(16, 3), tp.ones(16, 4)]
    >>> output, h, c = tp.lstm(tp.ones(5, 2, 3), states, params, False, 1, 0.0, False, False, False)
    >>> output.shape, h.shape, c.shape
    (Size([5, 2, 4]), Size([1, 2, 4]), Size([1, 2, 4]))
    """
    return _run(
        lstm_step,
        input,
        list(hx),
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    )


@composite_like(lstm, rule=_rule("gru", gru_step), outputs="output, hidden", method=False)
def gru(*args: Any) -> tuple[Tensor, Tensor]:
    """Return the outputs and the last states of a GRU, see :class:`tensorplug.nn.GRU`.

    Parameters
    ----------
    input, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
        As for :func:`lstm`.
    hx : Tensor
        The first states, (num_layers * directions, N, H).

    Returns
    -------
    output, hidden : Tensor
        The last layer's states of all steps, and the last states of all layers.
    """
    input, hx, *rest = args
    made: tuple[Tensor, Tensor] = _run(gru_step, input, [hx], *rest)
    return made


@composite_like(gru, rule=_rule("rnn_tanh", tanh_step), outputs="output, hidden", method=False)
def rnn_tanh(*args: Any) -> tuple[Tensor, Tensor]:
    """Return the outputs and the last states of cells with tanh, see :class:`tensorplug.nn.RNN`.

    Parameters and results are those of :func:`gru`.
    """
    input, hx, *rest = args
    made: tuple[Tensor, Tensor] = _run(tanh_step, input, [hx], *rest)
    return made


@composite_like(gru, rule=_rule("rnn_relu", relu_step), outputs="output, hidden", method=False)
def rnn_relu(*args: Any) -> tuple[Tensor, Tensor]:
    """Return the outputs and the last states of cells with relu, see :class:`tensorplug.nn.RNN`.

    Parameters and results are those of :func:`gru`.
    """
    input, hx, *rest = args
    made: tuple[Tensor, Tensor] = _run(relu_step, input, [hx], *rest)
    return made


def _conjugates(tensors: Sequence[Any]) -> list[Any]:
    """Return conjugates: what a gradient is multiplied by is the derivative at them."""
    return [tensor._conj() for tensor in tensors]


def _lstm_cell(g_hidden: Any, g_state: Any, inputs: Any, state: Any) -> list[Any]:
    g_gates, g_cell = lstm_cell_backward(g_hidden, g_state, _conjugates(inputs), state._conj())
    return [g_gates, g_gates, g_cell]


def _lstm_layer(
    g_output: Any, g_states: Any, g_own: Any, inputs: Any, reverse: bool, output: Any, states: Any, own: Any
) -> list[Any]:  # fmt: skip
    results = _conjugates([output, states, own])
    return list(
        lstm_layer_backward(g_output, g_states, g_own, _conjugates(inputs), reverse, results)
    )


def _gru_layer(
    g_output: Any, g_own: Any, inputs: Any, reverse: bool, output: Any, own: Any
) -> list[Any]:
    results = _conjugates([output, own])
    return list(gru_layer_backward(g_output, g_own, _conjugates(inputs), reverse, results))


def _gru_cell(g: Any, inputs: Any) -> list[Any]:
    return list(gru_cell_backward(g, _conjugates(inputs)))


DERIVATIVES = [
    derivative("lstm_layer", inputs=_lstm_layer),
    derivative("gru_layer", inputs=_gru_layer),
    derivative("lstm_cell", inputs=_lstm_cell),
    derivative("gru_cell", inputs=_gru_cell),
]
