"""Fourier transforms over two and more dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import FLOATS
from ...dispatch.op_registry import composite, composite_like
from ...dispatch.out_dtypes import exact_out
from .fourier import Dims, c2c_over, c2r_over, r2c_over

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__: list[str] = []


@composite(name="fft_fft2", method=False)
def fft_fft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the discrete Fourier transform over two dimensions.

    Parameters
    ----------
    input : Tensor
    s : sequence of int, optional
        The length of the signal along each dimension, cut off or filled up with zeros.
    dim : sequence of int
        The dimensions.
    norm : {"backward", "ortho", "forward"}, optional
        Which of the two directions carries the factor 1 / n; "ortho" divides it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.fft2(tp.ones(4, 4)).shape
    Size([4, 4])
    """
    return c2c_over("fft2", True, input, s, dim, norm)


@composite_like(fft_fft2, method=False)
def fft_ifft2(*args: Any) -> Tensor:
    """Return the inverse discrete Fourier transform over two dimensions.

    The parameters are those of :func:`fft.fft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ifft2(tp.ones(4, 4)).shape
    Size([4, 4])
    """
    return c2c_over("ifft2", False, *args)


@composite_like(fft_fft2, method=False)
def fft_rfft2(*args: Any) -> Tensor:
    """Return half the transform of a real tensor over two dimensions.

    The parameters are those of :func:`fft.fft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.rfft2(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("rfft2", True, *args)


@composite(name="fft_irfft2", method=False)
def fft_irfft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the real tensor whose half transform this is, over two dimensions.

    Parameters
    ----------
    input : Tensor
    s : sequence of int, optional
        The size of the result along each dimension; by default the last is 2 (m - 1).
    dim : sequence of int
        The dimensions.
    norm : {"backward", "ortho", "forward"}, optional
        Which of the two directions carries the factor 1 / n; "ortho" divides it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.irfft2(tp.ones(4, 4)).shape
    Size([4, 6])
    """
    return c2r_over("irfft2", False, input, s, dim, norm)


@composite_like(fft_irfft2, method=False)
def fft_hfft2(*args: Any) -> Tensor:
    """Return the real transform of a tensor of which half is given, over two dimensions.

    The parameters are those of :func:`fft.irfft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.hfft2(tp.ones(4, 4)).shape
    Size([4, 6])
    """
    return c2r_over("hfft2", True, *args)


@composite_like(fft_fft2, method=False)
def fft_ihfft2(*args: Any) -> Tensor:
    """Return the half of the tensor whose real transform this is, over two dimensions.

    The parameters are those of :func:`fft.fft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ihfft2(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("ihfft2", False, *args)


@composite(name="fft_fftn", method=False)
def fft_fftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: Dims = None,
    norm: str | None = None,
) -> Tensor:
    """Return the discrete Fourier transform over several dimensions.

    Parameters
    ----------
    input : Tensor
    s : sequence of int, optional
        The length of the signal along each dimension, cut off or filled up with zeros.
    dim : sequence of int, optional
        The dimensions; by default the last ones that `s` has sizes for, or all.
    norm : {"backward", "ortho", "forward"}, optional
        Which of the two directions carries the factor 1 / n; "ortho" divides it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.fftn(tp.ones(4, 4)).shape
    Size([4, 4])
    """
    return c2c_over("fftn", True, input, s, dim, norm)


@composite_like(fft_fftn, method=False)
def fft_ifftn(*args: Any) -> Tensor:
    """Return the inverse discrete Fourier transform over several dimensions.

    The parameters are those of :func:`fft.fftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ifftn(tp.ones(4, 4)).shape
    Size([4, 4])
    """
    return c2c_over("ifftn", False, *args)


@composite_like(fft_fftn, method=False)
def fft_rfftn(*args: Any) -> Tensor:
    """Return half the transform of a real tensor over several dimensions.

    The parameters are those of :func:`fft.fftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.rfftn(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("rfftn", True, *args)


@composite(name="fft_irfftn", method=False)
def fft_irfftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: Dims = None,
    norm: str | None = None,
) -> Tensor:
    """Return the real tensor whose half transform this is, over several dimensions.

    Parameters
    ----------
    input : Tensor
    s : sequence of int, optional
        The size of the result along each dimension; by default the last is 2 (m - 1).
    dim : sequence of int, optional
        The dimensions; by default the last ones that `s` has sizes for, or all.
    norm : {"backward", "ortho", "forward"}, optional
        Which of the two directions carries the factor 1 / n; "ortho" divides it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.irfftn(tp.ones(4, 4)).shape
    Size([4, 6])
    """
    return c2r_over("irfftn", False, input, s, dim, norm)


@composite_like(fft_irfftn, method=False)
def fft_hfftn(*args: Any) -> Tensor:
    """Return the real transform of a tensor of which half is given, over several dimensions.

    The parameters are those of :func:`fft.irfftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.hfftn(tp.ones(4, 4)).shape
    Size([4, 6])
    """
    return c2r_over("hfftn", True, *args)


@composite_like(fft_fftn, method=False)
def fft_ihfftn(*args: Any) -> Tensor:
    """Return the half of the tensor whose real transform this is, over several dimensions.

    The parameters are those of :func:`fft.fftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ihfftn(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("ihfftn", False, *args)


exact_out(fft_irfft2, fft_hfft2, fft_irfftn, fft_hfftn, others=FLOATS)
