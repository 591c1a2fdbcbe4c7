"""Fourier transforms over two and more dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dispatch.op_registry import composite
from .fourier import Dims, c2c_over, c2r_over, r2c_over

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__: list[str] = []


@composite(name="fft_fft2", method=False)
def fft_fft2(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
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
    return c2c_over("fft2", input, s, dim, norm, True)


@composite(name="fft_ifft2", method=False)
def fft_ifft2(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the inverse discrete Fourier transform over two dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.fft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ifft2(tp.ones(4, 4)).shape
    Size([4, 4])
    """
    return c2c_over("ifft2", input, s, dim, norm, False)


@composite(name="fft_rfft2", method=False)
def fft_rfft2(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return half the transform of a real tensor over two dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.fft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.rfft2(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("rfft2", input, s, dim, norm, True)


@composite(name="fft_irfft2", method=False)
def fft_irfft2(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
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
    return c2r_over("irfft2", input, s, dim, norm, False)


@composite(name="fft_hfft2", method=False)
def fft_hfft2(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the real transform of a tensor of which half is given, over two dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.irfft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.hfft2(tp.ones(4, 4)).shape
    Size([4, 6])
    """
    return c2r_over("hfft2", input, s, dim, norm, True)


@composite(name="fft_ihfft2", method=False)
def fft_ihfft2(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the half of the tensor whose real transform this is, over two dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.fft2`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ihfft2(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("ihfft2", input, s, dim, norm, False)


@composite(name="fft_fftn", method=False)
def fft_fftn(
    input: Tensor,
    s: Sequence[int] | None = None,
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
    return c2c_over("fftn", input, s, dim, norm, True)


@composite(name="fft_ifftn", method=False)
def fft_ifftn(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Dims = None,
    norm: str | None = None,
) -> Tensor:
    """Return the inverse discrete Fourier transform over several dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.fftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ifftn(tp.ones(4, 4)).shape
    Size([4, 4])
    """
    return c2c_over("ifftn", input, s, dim, norm, False)


@composite(name="fft_rfftn", method=False)
def fft_rfftn(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Dims = None,
    norm: str | None = None,
) -> Tensor:
    """Return half the transform of a real tensor over several dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.fftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.rfftn(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("rfftn", input, s, dim, norm, True)


@composite(name="fft_irfftn", method=False)
def fft_irfftn(
    input: Tensor,
    s: Sequence[int] | None = None,
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
    return c2r_over("irfftn", input, s, dim, norm, False)


@composite(name="fft_hfftn", method=False)
def fft_hfftn(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Dims = None,
    norm: str | None = None,
) -> Tensor:
    """Return the real transform of a tensor of which half is given, over several dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.irfftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.hfftn(tp.ones(4, 4)).shape
    Size([4, 6])
    """
    return c2r_over("hfftn", input, s, dim, norm, True)


@composite(name="fft_ihfftn", method=False)
def fft_ihfftn(
    input: Tensor,
    s: Sequence[int] | None = None,
    dim: Dims = None,
    norm: str | None = None,
) -> Tensor:
    """Return the half of the tensor whose real transform this is, over several dimensions.

    Parameters
    ----------
    input, s, dim, norm
        As for :func:`fft.fftn`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ihfftn(tp.ones(4, 4)).shape
    Size([4, 3])
    """
    return r2c_over("ihfftn", input, s, dim, norm, False)
