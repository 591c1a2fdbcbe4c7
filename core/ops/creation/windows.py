"""Window functions of the top level; :mod:`.windows_signal` has torch.signal's.

The formulas are those of Harris, "On the use of windows for harmonic analysis with the discrete
Fourier transform" (1978), of Nuttall (1981), and of Kaiser and Schafer (1980).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...device.dtypes import DType, float32, get_default_dtype
from ...dispatch import op_registry
from ...dispatch.op_registry import composite
from ...tensor.shapes import is_truth
from ..rules import cast

if TYPE_CHECKING:
    from ...device.device import Device
    from ...tensor.tensor import Tensor

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]

_ARANGE = op_registry.handle("arange")
_I0 = op_registry.handle("i0")
_FULL = op_registry.handle("full")

Shape = Callable[[Any, int], Any]  # from the indices 0 to n - 1, and n


def window(
    name: str,
    length: Any,
    periodic: bool,
    shape: Shape,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    alone: float = 1.0,
) -> Any:
    """Return a window; a periodic one is a longer symmetric one without its last element.

    One of a single element is `alone`, for most shapes divide by the length less one.
    """
    chosen = get_default_dtype() if dtype is None else dtype
    compute = float32 if chosen.itemsize == 2 else chosen
    if length < 2:
        result = _FULL.call((length,), alone, dtype=chosen, device=device)
    else:
        count = length + 1 if periodic else length
        indices = _ARANGE.call(length, dtype=compute, device=device)
        result = cast(shape(indices, count), chosen)
    return result.requires_grad_() if requires_grad else result


def _check_length(name: str, length: Any, dtype: DType | None) -> None:
    if is_truth(length) or not hasattr(length, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not "
            f"{type(length).__name__}"
        )
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype!r}")


def cosines(coefficients: list[float]) -> Shape:
    """Return the sum of cosines with these coefficients, of alternating sign."""

    def shape(indices: Any, count: int) -> Any:
        angles = indices * (2 * math.pi / (count - 1))
        total: Any = coefficients[0]
        for order, coefficient in enumerate(coefficients[1:], 1):
            sign = -1 if order % 2 else 1
            total = (angles * order).cos() * (sign * coefficient) + total
        return total if hasattr(total, "dtype") else indices * 0 + total

    return shape


def triangle(places: Any, count: int) -> Any:
    return 1 - (places * (2 / (count - 1)) - 1).abs()


def kaiser(beta: float) -> Shape:
    def shape(indices: Any, count: int) -> Any:
        # The indices as -1 to 1, squared; rounding must not take it above 1.
        across = (indices * (2 / (count - 1)) - 1).square().clamp(max=1)
        top = _I0.call((1 - across).sqrt() * beta)
        return top / _I0.call(indices.new_full((), beta))

    return shape


@composite(method=False)
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the Hann window.

    Parameters
    ----------
    window_length : int
        The number of elements.
    periodic : bool
        Whether to leave out the last element of the symmetric window of one more, so that
        repeating the window goes on smoothly.
    dtype : DType, optional
        A floating-point one; by default the default dtype.
    layout, pin_memory : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    _check_length("hann_window", window_length, dtype)
    return window(
        "hann_window", window_length, periodic, cosines([0.5, 0.5]), dtype, device, requires_grad
    )


@composite(method=False)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the Hamming window.

    Parameters
    ----------
    window_length, periodic
        As for :func:`hann_window`.
    alpha, beta : float
        The constant and the factor of the cosine.
    dtype, layout, device, requires_grad, pin_memory
        As for :func:`hann_window`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hamming_window(2)
    tensor([0.0800, 1.0000])
    """
    _check_length("hamming_window", window_length, dtype)
    return window(
        "hamming_window",
        window_length,
        periodic,
        cosines([alpha, beta]),
        dtype,
        device,
        requires_grad,
    )


@composite(method=False)
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the Blackman window.

    Parameters
    ----------
    window_length, periodic, dtype, layout, device, requires_grad, pin_memory
        As for :func:`hann_window`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.blackman_window(4).shape
    Size([4])
    """
    _check_length("blackman_window", window_length, dtype)
    return window(
        "blackman_window",
        window_length,
        periodic,
        cosines([0.42, 0.5, 0.08]),
        dtype,
        device,
        requires_grad,
    )


@composite(method=False)
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the Bartlett, or triangular, window.

    Parameters
    ----------
    window_length, periodic, dtype, layout, device, requires_grad, pin_memory
        As for :func:`hann_window`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    _check_length("bartlett_window", window_length, dtype)
    return window(
        "bartlett_window", window_length, periodic, triangle, dtype, device, requires_grad
    )


@composite(method=False)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the Kaiser window.

    Parameters
    ----------
    window_length, periodic
        As for :func:`hann_window`.
    beta : float
        How narrow the window is.
    dtype, layout, device, requires_grad, pin_memory
        As for :func:`hann_window`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.kaiser_window(4).shape
    Size([4])
    """
    _check_length("kaiser_window", window_length, dtype)
    return window(
        "kaiser_window", window_length, periodic, kaiser(beta), dtype, device, requires_grad
    )
