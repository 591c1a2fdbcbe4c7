"""Window functions, of the top level and of ``torch.signal.windows``.

The formulas are those of Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform" (1978), of Nuttall (1981), and of Kaiser and Schafer (1980).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import operators
from ..dtypes import DType, float32, float64, get_default_dtype
from ..operators import composite
from .rules import cast

if TYPE_CHECKING:
    from ..devices import Device
    from ..tensor import Tensor

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]

_ARANGE = operators.handle("arange")
_I0 = operators.handle("i0")
_ONES = operators.handle("ones")

Shape = Callable[[Any, int], Any]  # from the places 0 to n - 1, and n


def _window(
    name: str,
    length: Any,
    periodic: bool,
    shape: Shape,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
) -> Any:
    """Return a window; a periodic one is the symmetric one of one more element, without its last."""
    chosen = get_default_dtype() if dtype is None else dtype
    compute = float32 if chosen.itemsize == 2 else chosen
    if length < 2:
        result = _ONES.call(length, dtype=chosen, device=device)
    else:
        count = length + 1 if periodic else length
        places = _ARANGE.call(length, dtype=compute, device=device)
        result = cast(shape(places, count), chosen)
    return result.requires_grad_() if requires_grad else result


def _check_length(name: str, length: Any, dtype: DType | None) -> None:
    if isinstance(length, bool) or not hasattr(length, "__index__"):
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


def _cosines(coefficients: list[float]) -> Shape:
    """Return the sum of cosines with these coefficients, of alternating sign."""

    def shape(places: Any, count: int) -> Any:
        angles = places * (2 * math.pi / (count - 1))
        total: Any = coefficients[0]
        for order, coefficient in enumerate(coefficients[1:], 1):
            sign = -1 if order % 2 else 1
            total = (angles * order).cos() * (sign * coefficient) + total
        return total if hasattr(total, "dtype") else places * 0 + total

    return shape


def _triangle(places: Any, count: int) -> Any:
    return 1 - (places * (2 / (count - 1)) - 1).abs()


def _kaiser(beta: float) -> Shape:
    def shape(places: Any, count: int) -> Any:
        # The places as -1 to 1, squared; rounding must not take it above 1.
        across = (places * (2 / (count - 1)) - 1).square().clamp(max=1)
        top = _I0.call((1 - across).sqrt() * beta)
        return top / _I0.call(places.new_full((), beta))

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
        Whether to leave out the last element of the symmetric window of one more, so that repeating the
        window goes on smoothly.
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
    return _window(  # type: ignore[no-any-return]
        "hann_window", window_length, periodic, _cosines([0.5, 0.5]), dtype, device, requires_grad
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
    window_length : int
        The number of elements.
    periodic : bool
        Whether to leave out the last element of the symmetric window of one more, so that repeating the
        window goes on smoothly.
    alpha, beta : float
        The constant and the factor of the cosine.
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
    >>> tp.hamming_window(2)
    tensor([0.0800, 1.0000])
    """
    _check_length("hamming_window", window_length, dtype)
    return _window(  # type: ignore[no-any-return]
        "hamming_window",
        window_length,
        periodic,
        _cosines([alpha, beta]),
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
    window_length : int
        The number of elements.
    periodic : bool
        Whether to leave out the last element of the symmetric window of one more, so that repeating the
        window goes on smoothly.
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
    >>> tp.blackman_window(4).shape
    Size([4])
    """
    _check_length("blackman_window", window_length, dtype)
    return _window(  # type: ignore[no-any-return]
        "blackman_window",
        window_length,
        periodic,
        _cosines([0.42, 0.5, 0.08]),
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
    window_length : int
        The number of elements.
    periodic : bool
        Whether to leave out the last element of the symmetric window of one more, so that repeating the
        window goes on smoothly.
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
    >>> tp.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    _check_length("bartlett_window", window_length, dtype)
    return _window(  # type: ignore[no-any-return]
        "bartlett_window", window_length, periodic, _triangle, dtype, device, requires_grad
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
    window_length : int
        The number of elements.
    periodic : bool
        Whether to leave out the last element of the symmetric window of one more, so that repeating the
        window goes on smoothly.
    beta : float
        How narrow the window is.
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
    >>> tp.kaiser_window(4).shape
    Size([4])
    """
    _check_length("kaiser_window", window_length, dtype)
    return _window(  # type: ignore[no-any-return]
        "kaiser_window", window_length, periodic, _kaiser(beta), dtype, device, requires_grad
    )


# --- torch.signal.windows ---------------------------------------------------------------------


def _signal(
    name: str,
    M: Any,
    sym: bool,
    shape: Shape,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
) -> Any:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if (dtype or get_default_dtype()) not in (float32, float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype!r}")
    return _window(name, M, not sym, shape, dtype, device, requires_grad)


def _sine(places: Any, count: int) -> Any:
    return ((places + 0.5) * (math.pi / count)).sin()


@composite(name="windows_bartlett", method=False)
def windows_bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Bartlett, or triangular, window.

    Parameters
    ----------
    M : int
        The number of elements.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_bartlett
    >>> windows_bartlett(3).shape
    Size([3])
    """
    return _signal("bartlett", M, sym, _triangle, dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_blackman", method=False)
def windows_blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Blackman window.

    Parameters
    ----------
    M : int
        The number of elements.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_blackman
    >>> windows_blackman(3).shape
    Size([3])
    """
    return _signal("blackman", M, sym, _cosines([0.42, 0.5, 0.08]), dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_cosine", method=False)
def windows_cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return half a period of the sine, sampled between its zeros.

    Parameters
    ----------
    M : int
        The number of elements.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_cosine
    >>> windows_cosine(3).shape
    Size([3])
    """
    return _signal("cosine", M, sym, _sine, dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_exponential", method=False)
def windows_exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the window that falls off exponentially.

    Parameters
    ----------
    M : int
        The number of elements.
    center : float, optional
        Where it is 1, of a periodic window; by default the middle.
    tau : float
        The distance over which it falls to 1 / e.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_exponential
    >>> windows_exponential(3).shape
    Size([3])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(places: Any, count: int) -> Any:
        middle = (count - 1) / 2 if center is None else center
        return ((places - middle).abs() * (-1 / tau)).exp()

    return _signal("exponential", M, sym, shape, dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_gaussian", method=False)
def windows_gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Gaussian window.

    Parameters
    ----------
    M : int
        The number of elements.
    std : float
        The standard deviation.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_gaussian
    >>> windows_gaussian(3).shape
    Size([3])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def shape(places: Any, count: int) -> Any:
        return (((places - (count - 1) / 2) / std).square() * -0.5).exp()

    return _signal("gaussian", M, sym, shape, dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_general_cosine", method=False)
def windows_general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a sum of cosines of alternating sign.

    Parameters
    ----------
    M : int
        The number of elements.
    a : sequence of float
        The coefficients.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_general_cosine
    >>> windows_general_cosine(3, a=[0.5, 0.5]).shape
    Size([3])
    """
    if not isinstance(a, Iterable):
        raise TypeError(f"Coefficients must be a list/tuple, got {a!r}")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    return _signal("general_cosine", M, sym, _cosines(coefficients), dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_general_hamming", method=False)
def windows_general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the generalized Hamming window.

    Parameters
    ----------
    M : int
        The number of elements.
    alpha : float
        The constant; 1 - alpha is the factor of the cosine.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_general_hamming
    >>> windows_general_hamming(3).shape
    Size([3])
    """
    return _signal(
        "general_hamming", M, sym, _cosines([alpha, 1.0 - alpha]), dtype, device, requires_grad
    )  # type: ignore[no-any-return]


@composite(name="windows_hamming", method=False)
def windows_hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Hamming window.

    Parameters
    ----------
    M : int
        The number of elements.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_hamming
    >>> windows_hamming(3).shape
    Size([3])
    """
    return _signal("hamming", M, sym, _cosines([0.54, 0.46]), dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_hann", method=False)
def windows_hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Hann window.

    Parameters
    ----------
    M : int
        The number of elements.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_hann
    >>> windows_hann(3).shape
    Size([3])
    """
    return _signal("hann", M, sym, _cosines([0.5, 0.5]), dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_kaiser", method=False)
def windows_kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Kaiser window.

    Parameters
    ----------
    M : int
        The number of elements.
    beta : float
        How narrow the window is.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_kaiser
    >>> windows_kaiser(3).shape
    Size([3])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _signal("kaiser", M, sym, _kaiser(beta), dtype, device, requires_grad)  # type: ignore[no-any-return]


@composite(name="windows_nuttall", method=False)
def windows_nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Nuttall window of four terms.

    Parameters
    ----------
    M : int
        The number of elements.
    sym : bool
        Whether the window is symmetric, rather than one period of a periodic one.
    dtype : DType, optional
        float32 or float64.
    layout : optional
        Accepted for the sake of torch's signature.
    device : Device, optional
        By default the default device.
    requires_grad : bool
        Whether the window requires grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.windows import windows_nuttall
    >>> windows_nuttall(3).shape
    Size([3])
    """
    return _signal(
        "nuttall",
        M,
        sym,
        _cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411]),
        dtype,
        device,
        requires_grad,
    )  # type: ignore[no-any-return]
