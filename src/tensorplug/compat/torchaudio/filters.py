"""Filters whose output feeds back into itself, sample by sample."""

from __future__ import annotations

from typing import Any

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import KernelTable, composite, dtype_named

table = KernelTable("cpu")

_DECAY = 0.995  # of overdrive's filter, as in SoX


@composite(name="torchaudio._recursive", method=False)
def recursive(input: Tensor, coefficients: Tensor) -> Tensor:
    """Return the output of an all-pole filter, ``y[t] = x[t] - sum_k a[k] y[t - k]``, that begins at rest.

    Parameters
    ----------
    input : Tensor
        (batch, channels, time).
    coefficients : Tensor
        (channels, order + 1): of each channel a[0] to a[order]; a[0] counts as 1.
    """
    order = coefficients.shape[1] - 1
    past = input.new_zeros(*input.shape[:2], order)  # the latest output comes last
    feedback = coefficients[:, 1:].flip(1)
    made = []
    for now in input.unbind(2):
        made.append(now - (past * feedback).sum(2))
        past = tp.cat([past, made[-1].unsqueeze(2)], 2)[..., 1:]
    return tp.stack(made, 2) if made else input.clone()


@table.kernel("torchaudio._recursive", dtypes=[dtype_named("float32"), dtype_named("float64")])
def _recursive_on_cpu(input: Any, coefficients: Any) -> Any:
    import numpy as np
    from scipy.signal import lfilter

    made = np.empty_like(input)
    for channel, given in enumerate(coefficients):
        taps = given.copy()
        taps[0] = 1
        made[:, channel] = lfilter(np.ones(1, given.dtype), taps, input[:, channel], axis=-1)
    return made


@composite(name="torchaudio._lfilter_core_loop", method=False, outputs="")
def lfilter_core_loop(
    input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor
) -> None:
    """Write what an all-pole filter makes of signals behind ``order`` zeros.

    Parameters
    ----------
    input_signal_windows : Tensor
        (batch, channels, time).
    a_coeff_flipped : Tensor
        (channels, order + 1): coefficients, that of the present output (1) last.
    padded_output_waveform : Tensor
        (batch, channels, order + time), zeros; written to.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.
    """
    order = a_coeff_flipped.shape[1] - 1
    batch, channels, time = input_signal_windows.shape
    if a_coeff_flipped.shape[0] != channels or tuple(padded_output_waveform.shape) != (
        batch,
        channels,
        time + order,
    ):
        raise RuntimeError(
            f"_lfilter_core_loop(): expected coefficients of {channels} channels and an output of shape "
            f"{[batch, channels, time + order]}, got {list(a_coeff_flipped.shape)} and "
            f"{list(padded_output_waveform.shape)}"
        )
    made = recursive(input_signal_windows, a_coeff_flipped.flip(1))
    padded_output_waveform[:, :, order:].copy_(made)


@composite(name="torchaudio._overdrive_core_loop", method=False, outputs="")
def overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Write half of a signal and three quarters of its distorted form without what is constant in it.

    Parameters
    ----------
    waveform, temp : Tensor
        (channels, time): the signal, and its distorted form.
    last_in, last_out : Tensor
        (channels,): the sample of `temp` before the first, and what the filter returned for it.
    output_waveform : Tensor
        (channels, time); written to.
    """
    steps = temp.diff(dim=1, prepend=last_in.unsqueeze(1))
    start = steps.narrow(1, 0, min(1, steps.shape[1]))
    start += _DECAY * last_out.unsqueeze(1)
    taps = steps.new_tensor([[1.0, -_DECAY]])
    made = recursive(steps.unsqueeze(1), taps).squeeze(1)
    output_waveform.copy_(waveform * 0.5 + made * 0.75)


OPS = [recursive, lfilter_core_loop, overdrive_core_loop]
