"""Recurrent networks."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.contexts import thread
from tensorplug.core.ops import empty, zeros

from .. import init
from ..module import Module
from ..ops import rnn as ops
from ..parameter import Parameter
from ..utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]


_CHUNKS = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
# What runs sequences of one length, and one step of packed ones.
_RUNS: dict[str, tuple[Any, Any]] = {
    "LSTM": (ops.lstm, ops.lstm_step),
    "GRU": (ops.gru, ops.gru_step),
    "RNN_TANH": (ops.rnn_tanh, ops.tanh_step),
    "RNN_RELU": (ops.rnn_relu, ops.relu_step),
}

State: TypeAlias = tuple[Tensor, ...]


class RNNBase(Module):
    """What the recurrent networks share; `mode` says which one it is.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
        The kind of cell.
    input_size, hidden_size : int
        Sizes of the input and of the hidden state.
    num_layers : int
        Layers, each on top of the one before.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether sequences are (N, L, H) rather than (L, N, H).
    dropout : float
        The share of each layer's output, but the last's, that is dropped in training.
    bidirectional : bool
        Whether each layer also runs backwards, and outputs both.
    proj_size : int
        The size that an LSTM's hidden state is projected to, if not zero.
    device, dtype
        Where and of which dtype the parameters are made.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        _check(mode, input_size, hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1
        output_size = proj_size or hidden_size
        rows = _CHUNKS[mode] * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else output_size * directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, columns),
                    "weight_hh": (rows, output_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    made = empty(*shape, device=device, dtype=dtype)
                    setattr(self, f"{name}{suffix}", Parameter(made))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        both = [f"_l{layer}", f"_l{layer}_reverse"]
        return both if self.bidirectional else both[:1]

    def reset_parameters(self) -> None:
        """Draw the parameters anew, from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, and the lists of weights that torch's class keeps."""
        return {
            **self.__dict__,
            "_flat_weights_names": self._flat_weights_names,
            "_all_weights": self._weight_names(),
            "_flat_weights": self._flat_weights,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = {"proj_size": 0, **state}  # older pickles have no projections
        for name in ("_flat_weights_names", "_all_weights", "_flat_weights", "_flat_weight_refs"):
            kept.pop(name, None)
        super().__setstate__(kept)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._weight_names() for name in names if hasattr(self, name)]

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The weights as they are now, which pruning and parametrization compute; libraries look at them."""
        return [getattr(self, name) for name in self._flat_weights_names]

    def flatten_parameters(self) -> None:
        """Do nothing; torch puts the parameters into one block of memory here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, by layer and direction."""
        try:
            return [[getattr(self, name) for name in names] for names in self._weight_names()]
        except AttributeError as error:  # a property's would be taken for its own absence
            raise RuntimeError(
                f"{type(self).__name__}: an option that was set after the module was made asks for a "
                f"parameter that it does not have: {error}"
            ) from error

    def _weight_names(self) -> list[list[str]]:
        return [
            [f"{name}{suffix}" for name in self._names()]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _names(self) -> list[str]:
        names = ["weight_ih", "weight_hh"]
        names += ["bias_ih", "bias_hh"] if self.bias else []
        return names + (["weight_hr"] if self.proj_size else [])

    # --- running ---

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the last layer's outputs, and the last states of all layers.

        Parameters
        ----------
        input : Tensor or PackedSequence
            (L, N, H), (N, L, H) with `batch_first`, or (L, H).
        hx : Tensor or tuple of Tensor, optional
            The first states, (num_layers * directions, N, H), zeros by default; of an LSTM a pair of
            hidden and cell states.
        """
        states = self._as_tuple(hx)
        if isinstance(input, PackedSequence):
            sizes = [int(size) for size in input.batch_sizes.tolist()]
            self._check_input(input.data)
            states = self._first(input.data, sizes[0], states, input.sorted_indices, False)
            output, *last = self._run_packed(input.data, sizes, states)
            states = tuple([_permuted(state, input.unsorted_indices) for state in last])
            packed = PackedSequence(
                output, input.batch_sizes, input.sorted_indices, input.unsorted_indices
            )
            return packed, self._as_given(states)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead"
            )
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        self._check_input(x)
        batch_first = self.batch_first and batched
        states = self._first(x, x.shape[0 if batch_first else 1], states, None, not batched)
        output, *last = _RUNS[self.mode][0](
            x,
            list(states) if len(states) == 2 else states[0],
            self._params(),
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            batch_first,
        )
        if not batched:
            return output.squeeze(1), self._as_given(tuple([s.squeeze(1) for s in last]))
        return output, self._as_given(tuple(last))

    def _params(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def _run_packed(self, rows: Any, sizes: list[int], states: State) -> Any:
        return ops.run_layers(
            _RUNS[self.mode][1],
            rows,
            sizes,
            states,
            self._params(),
            self.bias,
            self.num_layers,
            self.dropout if self.training else 0.0,
            self.bidirectional,
        )

    def _as_tuple(self, hx: Any) -> State | None:
        if hx is None:
            return None
        if self.mode != "LSTM":
            return (hx,)
        return tuple(hx)

    def _as_given(self, states: State) -> Any:
        return states if self.mode == "LSTM" else states[0]

    def _check_input(self, x: Any) -> None:
        dtype = self.weight_ih_l0.dtype
        # Autocast, which is there once it was asked for, converts both.
        autocast = getattr(thread, "autocast", None)
        if x.dtype is not dtype and not (autocast and any(autocast.enabled.values())):
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({x.dtype})"
            )
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{x.shape[-1]}"
            )

    def _first(
        self, x: Any, n: int, states: State | None, order: Tensor | None, unbatched: bool
    ) -> State:
        """Return the first states, in the order of the batch."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            sizes.append(self.hidden_size)
        if states is None:
            made = [zeros(count, n, size, dtype=x.dtype, device=x.device) for size in sizes]
            return tuple(made)
        given = []
        for state, size in zip(states, sizes, strict=True):
            if state.ndim != (2 if unbatched else 3):
                raise RuntimeError(
                    f"For {'unbatched 2-D' if unbatched else 'batched 3-D'} input, hx should also be "
                    f"{'2-D' if unbatched else '3-D'} but got {state.ndim}-D tensor"
                )
            whole = state.unsqueeze(1) if unbatched else state
            if tuple(whole.shape) != (count, n, size):
                raise RuntimeError(
                    f"Expected hidden size {(count, n, size)}, got {list(whole.shape)}"
                )
            given.append(_permuted(whole, order))
        return tuple(given)

    def extra_repr(self) -> str:
        """Return the options that differ from their defaults."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)


def _permuted(state: Any, order: Tensor | None) -> Any:
    return state if order is None else state.index_select(1, order)


def _check(
    mode: str, input_size: int, hidden_size: int, num_layers: int, dropout: float, proj_size: int
) -> None:
    if mode not in _CHUNKS:
        raise ValueError(f"Unrecognized RNN mode: {mode}")
    if isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being "
            f"zeroed, got {dropout!r}"
        )
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if proj_size and mode != "LSTM":
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if dropout > 0 and num_layers == 1:
        import warnings

        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            UserWarning,
            stacklevel=4,
        )


class RNN(RNNBase):
    """A recurrent network of cells h' = tanh(W x + b + U h + c).

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype
        See :class:`RNNBase`.
    nonlinearity : {"tanh", "relu"}
        Which function.

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, h = RNN(3, 4)(tp.zeros(5, 2, 3))
    >>> output.shape, h.shape
    (Size([5, 2, 4]), Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("proj_size"):
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.__dict__["nonlinearity"] = nonlinearity
        mode = "RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU"
        super().__init__(mode, input_size, hidden_size, num_layers, *args, **kwargs)


class LSTM(RNNBase):
    """A recurrent network with gated cells (Hochreiter and Schmidhuber 1997).

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        See :class:`RNNBase`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, (h, c) = LSTM(3, 4, num_layers=2)(tp.zeros(5, 2, 3))
    >>> output.shape, h.shape, c.shape
    (Size([5, 2, 4]), Size([2, 2, 4]), Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """A recurrent network with reset and update gates (Cho et al. 2014).

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype
        See :class:`RNNBase`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("proj_size"):
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)
