"""Fourier transforms: one primitive, and the transforms of one dimension written with them.

Factors in front are named by a number: 0 is 1, 1 is 1 / sqrt(n) and 2 is 1 / n, whichever way the
transform goes. The adjoint of a transform is then the one the other way with the same number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import COMPLEX, FLOATING, FLOATS, DType, get_default_dtype
from ...dispatch import op_registry
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out
from ...tensor.shapes import as_shape, existing_dim, one_or_several
from ..arithmetic.pointwise import conj_physical
from ..rules import cast, check_tensor

if TYPE_CHECKING:
    from ...device.device import Device
    from ...tensor.tensor import Tensor

__all__: list[str] = []

_ARANGE = op_registry.handle("arange")
_CAT = op_registry.handle("cat")
_REAL = op_registry.handle("real")

Dims = Sequence[int] | int | None


# --- primitives -------------------------------------------------------------------------------


@primitive("input, dim, normalization, forward", method=False)
def fft_c2c(input: Tensor, dim: tuple[int, ...], normalization: int, forward: bool) -> Spec:
    """Return the transform, forward or back, of a complex tensor over canonical dimensions."""
    return Spec((input, dim, normalization, forward), input._shape, input.dtype)


@composite(method=False)
def fft_r2c(input: Tensor, dim: tuple[int, ...], normalization: int) -> Tensor:
    """Return the first half, along the last of the dimensions, of a real tensor's transform."""
    whole = fft_c2c(cast(input, input.dtype.to_complex()), dim, normalization, True)
    return whole.narrow(dim[-1], 0, input._shape[dim[-1]] // 2 + 1).clone()


@composite(method=False)
def fft_c2r(input: Tensor, dim: tuple[int, ...], normalization: int, last: int) -> Tensor:
    """Return the real tensor whose half transform this is, `last` long along the last of `dim`."""
    edge = dim[-1]
    if len(dim) > 1:
        input = fft_c2c(input, dim[:-1], normalization, False)
    # The half that is not there mirrors the inner part of the half that is.
    inner = (last - 1) // 2
    mirrored = conj_physical(input.narrow(edge, 1, inner)).flip(edge)
    whole = _CAT.call([input.narrow(edge, 0, last // 2 + 1), mirrored], edge)
    return _REAL.call(fft_c2c(whole, (edge,), normalization, False)).clone()


# --- arguments --------------------------------------------------------------------------------


def _normalization(name: str, norm: str | None, forward: bool) -> int:
    if norm == "ortho":
        return 1
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    raise RuntimeError(
        f"{name}(): Invalid normalization mode: {norm!r}; use 'forward', 'backward' or 'ortho'"
    )


def _converted(name: str, input: Any, *, to_complex: bool) -> Any:
    """Return the input in a dtype that transforms take, complex if asked for."""
    check_tensor(input, name)
    dtype = input._key.dtype
    if dtype.category < FLOATING:
        dtype = get_default_dtype()
    if dtype.itemsize == 2:
        raise RuntimeError(
            f"{name}(): Unsupported dtype {dtype.name}; convert the input with .float()"
        )
    return cast(input, dtype.to_complex() if to_complex else dtype)


def _real(name: str, input: Any) -> Any:
    check_tensor(input, name)
    if input._key.dtype.category == COMPLEX:
        # torch's words: of several dimensions it says another one, and rfft2 is its rfftn.
        several = "n" in name or "2" in name
        kind, called = ("real-valued", name.replace("2", "n")) if several else ("real", name)
        raise RuntimeError(f"{called} expects a {kind} input tensor, but got {input.dtype.name}")
    return _converted(name, input, to_complex=False)


def _check_points(name: str, size: int) -> None:
    if size < 1:
        raise RuntimeError(f"{name}(): Invalid number of data points ({size}) specified")


def _sizes(name: str, s: Any) -> list[int] | None:
    return (
        None
        if s is None
        else list(as_shape((tuple(s) if isinstance(s, (tuple, list)) else (s,),), name))
    )


def _many_dims(
    name: str, input: Any, s: Sequence[int] | int | None, dim: Dims
) -> tuple[tuple[int, ...], list[int]]:
    """Return the dimensions, in the given order, and the size of the signal along each."""
    ndim = len(input._shape)
    sizes = _sizes(name, s)
    if dim is None:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise RuntimeError(
                f"{name}(): Got shape with {count} values but input tensor only has {ndim} "
                "dimensions."
            )
        dims = list(range(ndim - count, ndim))
    else:
        given = list(one_or_several(dim))
        dims = [existing_dim(d, ndim, name) for d in given]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"{name}(): FFT dims must be unique, got {given}")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError(
                f"{name}(): When given, dim and shape arguments must have the same length, got "
                f"{given} "
                f"and {sizes}"
            )
    if sizes is None:
        sizes = [input._shape[d] for d in dims]
    else:
        sizes = [input._shape[d] if n == -1 else n for n, d in zip(sizes, dims, strict=True)]
    for size in sizes:
        _check_points(name, size)
    return tuple(dims), sizes


def _resized(input: Any, dims: tuple[int, ...], sizes: Sequence[int]) -> Any:
    """Return the input cut off, or filled up with zeros, to the sizes."""
    for dim, size in zip(dims, sizes, strict=True):
        own = input._shape[dim]
        if own > size:
            input = input.narrow(dim, 0, size)
        elif own < size:
            shape = list(input._shape)
            shape[dim] = size - own
            input = _CAT.call([input, input.new_zeros(shape)], dim)
    return input


def c2c_over(name: str, forward: bool, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
    input = _converted(name, input, to_complex=True)
    dims, sizes = _many_dims(name, input, s, dim)
    scale = _normalization(name, norm, forward)
    if not dims:
        return input.clone()
    return fft_c2c(_resized(input, dims, sizes), dims, scale, forward)


def r2c_over(name: str, forward: bool, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
    input = _real(name, input)
    dims, sizes = _many_dims(name, input, s, dim)
    _check_some(name, dims)
    result = fft_r2c(_resized(input, dims, sizes), dims, _normalization(name, norm, forward))
    return result if forward else conj_physical(result)


def c2r_over(name: str, forward: bool, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
    input = _converted(name, input, to_complex=True)
    ndim = len(input._shape)
    given: Any = _sizes(name, s)
    last = given[-1] if given else None
    if given:
        # How much of the input that takes is settled below.
        given = [*given[:-1], -1 if last == -1 else 1]
    if not ndim and not dim:
        _check_some(name, ())
    dims, sizes = _many_dims(name, input, given, dim)
    _check_some(name, dims)
    if last is None or last == -1:
        last = 2 * (input._shape[dims[-1]] - 1)
    _check_points(name, last)
    sizes = [*sizes[:-1], last // 2 + 1]
    input = _resized(input, dims, sizes)
    if forward:
        input = input._conj()
    return fft_c2r(input, dims, _normalization(name, norm, forward), last)


def _check_some(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise RuntimeError(f"{name}() must transform at least one axis")


def _single(name: str, input: Any, n: int | None, dim: int) -> tuple[Any, tuple[int, ...]]:
    check_tensor(input, name)
    dims = (existing_dim(dim, len(input._shape), name),)
    if n is not None:
        _check_points(name, n)
    return (None if n is None else (n,)), dims


# --- one dimension ----------------------------------------------------------------------------


@composite(name="fft_fft", method=False)
def fft_fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform over one dimension.

    Parameters
    ----------
    input : Tensor
        Real or complex; integers are converted to the default dtype.
    n : int, optional
        The length of the signal, cut off or filled up with zeros.
    dim : int
        The dimension.
    norm : {"backward", "ortho", "forward"}, optional
        The factor in front: 1, 1 / sqrt(n) or 1 / n.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.fft(tp.tensor([1.0, 1.0]))
    tensor([2.+0.j, 0.+0.j])
    """
    s, dims = _single("fft", input, n, dim)
    return c2c_over("fft", True, input, s, dims, norm)


@composite(name="fft_ifft", method=False)
def fft_ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`fft` over one dimension; the factor is 1 / n by default.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ifft(tp.tensor([2.0, 0.0]))
    tensor([1.+0.j, 1.+0.j])
    """
    s, dims = _single("ifft", input, n, dim)
    return c2c_over("ifft", False, input, s, dims, norm)


@composite(name="fft_rfft", method=False)
def fft_rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the first n // 2 + 1 values of a real signal's transform; the rest mirrors them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.rfft(tp.tensor([1.0, 1.0, 1.0, 1.0])).shape
    Size([3])
    """
    s, dims = _single("rfft", input, n, dim)
    return r2c_over("rfft", True, input, s, dims, norm)


@composite(name="fft_irfft", method=False)
def fft_irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None
) -> Tensor:
    """Return the real signal of length `n`, by default 2 (m - 1), whose :func:`rfft` this is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.irfft(tp.tensor([4.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    s, dims = _single("irfft", input, n, dim)
    return c2r_over("irfft", False, input, s, dims, norm)


@composite(name="fft_hfft", method=False)
def fft_hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real transform of a signal of which half is given, and the rest mirrors it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.hfft(tp.tensor([1.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    s, dims = _single("hfft", input, n, dim)
    return c2r_over("hfft", True, input, s, dims, norm)


@composite(name="fft_ihfft", method=False)
def fft_ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None
) -> Tensor:
    """Return the half of the signal whose :func:`hfft` is the real `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ihfft(tp.tensor([1.0, 1.0, 1.0, 1.0])).shape
    Size([3])
    """
    s, dims = _single("ihfft", input, n, dim)
    return r2c_over("ihfft", False, input, s, dims, norm)


# --- frequencies and shifts -------------------------------------------------------------------


@composite(name="fft_fftfreq", method=False)
def fft_fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies that :func:`fft` of a signal of length `n`, sampled every `d`, finds.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    _check_frequencies("fftfreq", dtype)
    half = (n + 1) // 2
    up = _ARANGE.call(0, half, dtype=dtype or get_default_dtype(), device=device)
    down = _ARANGE.call(-(n // 2), 0, dtype=dtype or get_default_dtype(), device=device)
    return _scaled(_CAT.call([up, down], 0), n, d, requires_grad)


@composite(name="fft_rfftfreq", method=False)
def fft_rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies that :func:`rfft` of a signal of length `n`, sampled every `d`, finds.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    _check_frequencies("rfftfreq", dtype)
    indices = _ARANGE.call(0, n // 2 + 1, dtype=dtype or get_default_dtype(), device=device)
    return _scaled(indices, n, d, requires_grad)


def _check_frequencies(name: str, dtype: DType | None) -> None:
    if dtype is not None and dtype.category < FLOATING:
        raise RuntimeError(f"{name}() requires a floating point or complex dtype, got {dtype.name}")


def _scaled(indices: Any, n: int, d: float, requires_grad: bool) -> Any:
    result = indices * (1.0 / (n * d) if n * d else math.inf)
    return result.requires_grad_() if requires_grad else result


@composite(name="fft_fftshift", method=False)
def fft_fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the tensor rolled so that frequency 0 stands in the middle, along `dim` or all.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.fftshift(tp.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", input, dim, 0)


@composite(name="fft_ifftshift", method=False)
def fft_ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the tensor rolled so that frequency 0 comes first again; undoes :func:`fftshift`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fft.ifftshift(tp.tensor([-1, 0, 1]))
    tensor([ 0,  1, -1])
    """
    return _shifted("ifftshift", input, dim, 1)


def _shifted(name: str, input: Any, dim: Dims, up: int) -> Any:
    check_tensor(input, name)
    ndim = len(input._shape)
    if dim is None:
        dims = list(range(ndim))
    else:
        dims = [existing_dim(d, ndim, name) for d in one_or_several(dim)]
    if not dims:
        return input.clone()
    return input.roll([(input._shape[d] + up) // 2 for d in dims], dims)


exact_out(fft_ihfft)
exact_out(fft_irfft, fft_hfft, others=FLOATS)
