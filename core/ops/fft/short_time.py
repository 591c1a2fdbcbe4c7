"""The short-time Fourier transform and its inverse (Griffin and Lim, 1984)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import COMPLEX, FLOATING, int64
from ...dispatch import op_registry
from ...dispatch.op_registry import composite
from ...errors import warn
from ..rules import check_tensor
from .fourier import fft_fft, fft_ifft, fft_irfft, fft_rfft

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["istft", "stft"]

_ARANGE = op_registry.handle("arange")
_CAT = op_registry.handle("cat")
_VIEW_AS_REAL = op_registry.handle("view_as_real")

# Where the windows' squares sum up to less, dividing by them would only blow up noise.
_SMALLEST_ENVELOPE = 1e-11


def _padded(input: Any, count: int, mode: str) -> Any:
    """Return the signal with `count` samples before and behind it."""
    if not count:
        return input
    size = input._shape[-1]
    if mode == "constant":
        zeros = input.new_zeros((*input._shape[:-1], count))
        return _CAT.call([zeros, input, zeros], -1)
    if mode == "reflect":
        if count >= size:
            raise RuntimeError(
                "stft(): Argument #4: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({count}, {count}) and {size} samples"
            )
        before = input.narrow(-1, 1, count).flip(-1)
        behind = input.narrow(-1, size - 1 - count, count).flip(-1)
    elif mode == "replicate":
        shape = (*input._shape[:-1], count)
        before = input.narrow(-1, 0, 1).expand(shape)
        behind = input.narrow(-1, size - 1, 1).expand(shape)
    elif mode == "circular":
        if count > size:
            raise RuntimeError(
                f"stft(): circular padding of {count} goes around more than {size} samples"
            )
        before = input.narrow(-1, size - count, count)
        behind = input.narrow(-1, 0, count)
    else:
        raise NotImplementedError(
            f"stft(): pad_mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}"
        )
    return _CAT.call([before, input, behind], -1)


def _warn_without_window(advice: str) -> None:
    """Warn where a signal is cut into frames as it is: torch's words, by which people filter it."""
    warn(
        f"A window was not provided. A rectangular window will be applied, {advice}. To suppress this "
        "warning, pass window=tp.ones(win_length)",
        UserWarning,
    )


def _lengths(name: str, n_fft: int, hop: int | None, win: int | None) -> tuple[int, int]:
    hop_length = n_fft // 4 if hop is None else hop
    win_length = n_fft if win is None else win
    if hop_length <= 0:
        raise RuntimeError(f"{name}(): expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(
            f"{name}(): expected 0 < win_length <= n_fft, but got win_length={win_length}"
        )
    return hop_length, win_length


def _full_window(name: str, window: Any, win_length: int, n_fft: int, like: Any) -> Any:
    """Return the window with zeros on both sides up to `n_fft`; ones where none is given."""
    if window is None:
        window = like.new_ones((win_length,), dtype=like.dtype.to_real())
    check_tensor(window, name, "window")
    if window._shape != (win_length,):
        raise RuntimeError(
            f"{name}(): expected a 1D window tensor of size equal to win_length={win_length}, but got "
            f"window with size {list(window._shape)}"
        )
    left = (n_fft - win_length) // 2
    right = n_fft - win_length - left
    if not left and not right:
        return window
    parts = [window.new_zeros((left,)), window, window.new_zeros((right,))]
    return _CAT.call(parts, -1)


@composite()
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of overlapping windows of a signal.

    Parameters
    ----------
    input : Tensor
        ``(T,)`` or ``(B, T)``, real or complex.
    n_fft : int
        The size of each transform.
    hop_length : int, optional
        The distance of neighbouring windows; by default ``n_fft // 4``.
    win_length : int, optional
        The size of the window, which zeros fill up to `n_fft`; by default that.
    window : Tensor, optional
        By default ones.
    center : bool
        Whether to pad the signal so that window t is centred at ``t * hop_length``.
    pad_mode : {"reflect", "constant", "replicate", "circular"}
        What to pad with.
    normalized : bool
        Whether to divide by the square root of `n_fft`.
    onesided : bool, optional
        Whether to return half of the frequencies; by default for real signals and windows.
    return_complex : bool
        Whether to return complex numbers rather than pairs in a last dimension; has to be given for
        real signals.
    align_to_window : bool, optional
        Without `center`, whether windows, rather than transforms, start at the signal's start.

    Returns
    -------
    Tensor
        ``(B?, N, frames)``, with N ``n_fft // 2 + 1`` or `n_fft`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.stft(tp.ones(16), 8, window=tp.hann_window(8), return_complex=True).shape
    Size([5, 9])
    """
    check_tensor(input, "stft")
    dtype = input.dtype
    if dtype.category < FLOATING:
        raise RuntimeError(
            f"stft(): expected a tensor of floating point or complex values, got {dtype.name}"
        )
    if len(input._shape) not in (1, 2):
        raise RuntimeError(f"stft(): expected a 1D or 2D tensor, but got {len(input._shape)}D")
    complex_window = window is not None and window.dtype.is_complex
    if return_complex is None:
        if not dtype.is_complex and not complex_window:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs; pass "
                "return_complex=True"
            )
        return_complex = True
    if center and align_to_window is not None:
        raise RuntimeError("stft(): align_to_window should only be set when center=False")
    if window is None:
        _warn_without_window(
            "which is known to cause spectral leakage; tp.hann_window(win_length) is the usual one"
        )
    hop, size = _lengths("stft", n_fft, hop_length, win_length)
    signal: Any = input if len(input._shape) == 2 else input.reshape(1, input._shape[0])
    if center:
        signal = _padded(signal, n_fft // 2, pad_mode)
    elif align_to_window:
        signal = _padded(signal, (n_fft - size) // 2, "constant")
    samples = signal._shape[-1]
    if not 0 < n_fft <= samples:
        raise RuntimeError(f"stft(): expected 0 < n_fft <= {samples}, but got n_fft={n_fft}")
    frames = signal.unfold(-1, n_fft, hop)
    if window is not None or size < n_fft:  # else it is ones
        frames = frames * _full_window("stft", window, size, n_fft, signal)
    whole = frames.dtype.is_complex
    if onesided is None:
        onesided = not whole
    if onesided and whole:
        raise RuntimeError(
            "stft(): Cannot have onesided output if window or input is complex; pass onesided=False"
        )
    norm = "ortho" if normalized else None
    result: Any = (fft_rfft if onesided else fft_fft)(frames, norm=norm)
    result = result.permute(0, 2, 1)
    if len(input._shape) == 1:
        result = result.reshape(result._shape[1:])
    if return_complex:
        return result
    warn(
        "stft with return_complex=False is deprecated: call view_as_real() on the complex result",
        UserWarning,
    )
    return _VIEW_AS_REAL.call(result)


@composite()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal whose :func:`stft` is closest, in the least-squares sense, to `input`.

    Parameters
    ----------
    input : Tensor
        ``(B?, N, frames)``, complex.
    n_fft, hop_length, win_length, window, center, normalized, onesided
        As given to :func:`stft`.
    length : int, optional
        Of the signal, cut off or filled up with zeros.
    return_complex : bool
        Whether the signal is complex.

    Examples
    --------
    >>> import tensorplug as tp
    >>> window = tp.hann_window(8)
    >>> X = tp.stft(tp.ones(16), 8, window=window, return_complex=True)
    >>> tp.istft(X, 8, window=window).shape
    Size([16])
    """
    check_tensor(input, "istft")
    spectrum: Any = input
    if spectrum.dtype.category != COMPLEX:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            f"return_complex=True, got {input.dtype.name}"
        )
    if len(spectrum._shape) not in (2, 3) or not spectrum.numel():
        raise RuntimeError(
            f"istft(): expected a nonempty tensor of 2 or 3 dimensions, got {list(input._shape)}"
        )
    if window is None:
        _warn_without_window("which inverts stft() only where that had none either")
    hop, size = _lengths("istft", n_fft, hop_length, win_length)
    if len(spectrum._shape) == 2:
        spectrum = spectrum.reshape(1, *spectrum._shape)
    bins, frames = spectrum._shape[1:]
    if onesided is None:
        onesided = bins != n_fft
    if bins != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            "istft(): expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"n_fft ({n_fft}) with onesided={onesided}, but got {bins}"
        )
    if return_complex and onesided:
        raise RuntimeError("istft(): cannot have onesided input for a complex signal")
    full = _full_window("istft", window, size, n_fft, spectrum)
    norm = "ortho" if normalized else None
    columns = spectrum.permute(0, 2, 1)
    if return_complex:
        pieces: Any = fft_ifft(columns, norm=norm)
    else:
        # Of all frequencies of a real signal, the second half mirrors the first.
        pieces = fft_irfft(columns.narrow(-1, 0, n_fft // 2 + 1), n_fft, norm=norm)
    pieces = pieces * full
    total = n_fft + hop * (frames - 1)
    starts = _ARANGE.call(frames, dtype=int64, device=spectrum.device).reshape(frames, 1) * hop
    indices = _ARANGE.call(n_fft, dtype=int64, device=spectrum.device) + starts
    indices = indices.reshape(frames * n_fft)
    batch = pieces._shape[0]
    signal = pieces.new_zeros((batch, total)).index_add(
        1, indices, pieces.reshape(batch, frames * n_fft)
    )
    squares = (full * full).expand(frames, n_fft).reshape(frames * n_fft)
    envelope = squares.new_zeros((total,)).index_add(0, indices, squares)
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = total - n_fft // 2 if center else total
    stop = min(end, total)
    signal = signal.narrow(1, start, stop - start)
    envelope = envelope.narrow(0, start, stop - start)
    if not (envelope.is_meta or envelope._batched) and envelope.numel():
        smallest = envelope.abs().amin().item()
        if smallest <= _SMALLEST_ENVELOPE:
            raise RuntimeError(
                f"istft(): window overlap add min: {smallest} is not above {_SMALLEST_ENVELOPE}; take "
                "a window without zeros at its ends, or center=True"
            )
    signal = signal / envelope
    if end > total:
        warn(
            f"The length of signal is shorter than the length parameter, {total - start} than {length}: "
            "Result is being padded with zeros in the tail. Check center and hop_length",
            UserWarning,
        )
        zeros = signal.new_zeros((batch, end - total))
        signal = _CAT.call([signal, zeros], 1)
    if len(input._shape) == 2:
        signal = signal.reshape(signal._shape[1:])
    return signal
