"""One step of a recurrent network as a module."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import empty, zeros

from .. import functional as F, init
from ..module import Module
from ..ops.rnn import check_states, gru_step, lstm_step, relu_step, tanh_step
from ..parameter import Parameter
from .rnn import State

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What the cells share: one step of one layer."""

    nonlinearity: str = "tanh"
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty(rows, input_size, **made))
        self.weight_hh = Parameter(empty(rows, hidden_size, **made))
        self.register_parameter("bias_ih", Parameter(empty(rows, **made)) if bias else None)
        self.register_parameter("bias_hh", Parameter(empty(rows, **made)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _advance(self, input: Any, states: State | None, step: Callable[..., State]) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        if x.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}"
            )
        if states is None:
            count = 2 if isinstance(self, LSTMCell) else 1
            empty_state = zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)
            states = (empty_state,) * count
        else:
            for number, state in enumerate(states):
                if state.ndim not in (1, 2):
                    which = f"hx[{number}]" if isinstance(self, LSTMCell) else "hidden"
                    raise ValueError(
                        f"{name}: Expected {which} to be 1D or 2D, got {state.ndim}D instead"
                    )
            states = tuple([s if batched else s.unsqueeze(0) for s in states])
            check_states(name, x, *states)
            for number, state in enumerate(states):
                if state.shape[1] != self.hidden_size:
                    raise RuntimeError(
                        f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected "
                        f"{self.hidden_size}"
                    )
        gates = F.linear(x, self.weight_ih, self.bias_ih)
        new = step(gates, self.weight_hh, states, self.bias_hh)
        return new if batched else tuple([s.squeeze(0) for s in new])

    def extra_repr(self) -> str:
        """Return the options that differ from their defaults."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.nonlinearity != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)


class RNNCell(RNNCellBase):
    """One step h' = tanh(W x + b + U h + c).

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of input and state.
    bias : bool
        Whether there are biases.
    nonlinearity : {"tanh", "relu"}
        Which function.
    device, dtype
        Where and of which dtype the parameters are made.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = relu_step if self.nonlinearity == "relu" else tanh_step
        return self._advance(input, None if hx is None else (hx,), step)[0]


class LSTMCell(RNNCellBase):
    """One step of an :class:`LSTM`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next hidden and cell states."""
        h, c = self._advance(input, hx, lstm_step)
        return h, c


class GRUCell(RNNCellBase):
    """One step of a :class:`GRU`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        return self._advance(input, None if hx is None else (hx,), gru_step)[0]
