"""The windows of ``torch.signal.windows``; :mod:`.windows_namespace` has their public names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...device.dtypes import DType, float32, float64, get_default_dtype
from ...dispatch.op_registry import composite, composite_like
from ...tensor.layout import strided
from .windows import Shape, cosines, kaiser, triangle, window

if TYPE_CHECKING:
    from ...device.device import Device
    from ...tensor.tensor import Tensor

__all__: list[str] = []


def _signal(
    name: str,
    shape: Shape,
    M: Any,
    sym: bool,
    dtype: DType | None,
    layout: Any,
    device: Any,
    requires_grad: bool,
    alone: float = 1.0,
) -> Any:
    if layout not in (None, strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if (dtype or get_default_dtype()) not in (float32, float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype!r}")
    return window(name, M, not sym, shape, dtype, device, requires_grad, alone)


def _sine(indices: Any, count: int) -> Any:
    return ((indices + 0.5) * (math.pi / count)).sin()


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
    >>> from tensorplug.core.ops.creation.windows_signal import windows_bartlett
    >>> windows_bartlett(3).shape
    Size([3])
    """
    return _signal("bartlett", triangle, M, sym, dtype, layout, device, requires_grad)


@composite_like(windows_bartlett, method=False)
def windows_blackman(*args: Any) -> Tensor:
    """Return the Blackman window.

    The parameters are those of :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_blackman
    >>> windows_blackman(3).shape
    Size([3])
    """
    return _signal("blackman", cosines([0.42, 0.5, 0.08]), *args)


@composite_like(windows_bartlett, method=False)
def windows_cosine(*args: Any) -> Tensor:
    """Return half a period of the sine, sampled between its zeros.

    The parameters are those of :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_cosine
    >>> windows_cosine(3).shape
    Size([3])
    """
    return _signal("cosine", _sine, *args)


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
    dtype, layout, device, requires_grad
        As for :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_exponential
    >>> windows_exponential(3).shape
    Size([3])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau:g} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(indices: Any, count: int) -> Any:
        middle = (count - 1) / 2 if center is None else center
        return ((indices - middle).abs() * (-1 / tau)).exp()

    return _signal("exponential", shape, M, sym, dtype, layout, device, requires_grad)


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
    dtype, layout, device, requires_grad
        As for :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_gaussian
    >>> windows_gaussian(3).shape
    Size([3])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std:g} instead.")

    def shape(indices: Any, count: int) -> Any:
        return (((indices - (count - 1) / 2) / std).square() * -0.5).exp()

    alone = math.nan if math.isnan(std) else 1.0
    return _signal("gaussian", shape, M, sym, dtype, layout, device, requires_grad, alone)


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
    dtype, layout, device, requires_grad
        As for :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_general_cosine
    >>> windows_general_cosine(3, a=[0.5, 0.5]).shape
    Size([3])
    """
    if not isinstance(a, Iterable):
        raise TypeError(f"Coefficients must be a list/tuple, got {a!r}")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    shape = cosines(coefficients)
    return _signal("general_cosine", shape, M, sym, dtype, layout, device, requires_grad)


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
    dtype, layout, device, requires_grad
        As for :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_general_hamming
    >>> windows_general_hamming(3).shape
    Size([3])
    """
    shape = cosines([alpha, 1.0 - alpha])
    return _signal("general_hamming", shape, M, sym, dtype, layout, device, requires_grad)


@composite_like(windows_bartlett, method=False)
def windows_hamming(*args: Any) -> Tensor:
    """Return the Hamming window.

    The parameters are those of :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_hamming
    >>> windows_hamming(3).shape
    Size([3])
    """
    return _signal("hamming", cosines([0.54, 0.46]), *args)


@composite_like(windows_bartlett, method=False)
def windows_hann(*args: Any) -> Tensor:
    """Return the Hann window.

    The parameters are those of :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_hann
    >>> windows_hann(3).shape
    Size([3])
    """
    return _signal("hann", cosines([0.5, 0.5]), *args)


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
    dtype, layout, device, requires_grad
        As for :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_kaiser
    >>> windows_kaiser(3).shape
    Size([3])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta:g} instead.")
    return _signal("kaiser", kaiser(beta), M, sym, dtype, layout, device, requires_grad)


@composite_like(windows_bartlett, method=False)
def windows_nuttall(*args: Any) -> Tensor:
    """Return the Nuttall window of four terms.

    The parameters are those of :func:`windows_bartlett`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.creation.windows_signal import windows_nuttall
    >>> windows_nuttall(3).shape
    Size([3])
    """
    return _signal("nuttall", cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411]), *args)
