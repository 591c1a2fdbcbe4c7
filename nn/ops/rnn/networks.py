"""Recurrent networks: all steps of all layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.core.dispatch.op_registry import Delegated, composite, composite_like
from tensorplug.core.ops import cat, stack
from tensorplug.core.ops.rules import check_tensor

from ..dropout import dropout as drop
from ..linear import linear
from .cells import gru_cell, lstm_cell
from .layers import gru_layer, lstm_layer

if TYPE_CHECKING:
    from tensorplug.core import Tensor

    States = tuple[Tensor, ...]
    Step = Callable[[Any, Any, Any, Any], Any]


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
