"""Bessel functions and the Airy function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device.dtypes import COMPLEX
from ...dispatch.op_registry import Spec, composite, primitive
from ..arithmetic.division import div
from ..arithmetic.pointwise import abs, add, mul
from ..arithmetic.powers import square
from ..comparison import isinf, lt
from ..elementary.circular import sin
from ..masking import where
from ..rules import cast, check_tensor, elementwise, in_float32, to_floating

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["i0"]


@primitive("input, function", method=False, elementwise=True)
def bessel(input: Tensor, function: str) -> Spec:
    """Return one of the Bessel functions; what ``i0``, ``special.bessel_j0`` and the others call.

    Parameters
    ----------
    input : Tensor
        Real; integers and bool are computed in the default dtype.
    function : str
        The kind and order: "j0", "j1", "y0", "y1", "i0", "i0e", "i1", "i1e", "k0", "k0e", "k1",
        "k1e", where a final e means scaled by an exponential; "airy_ai" or its derivative
        "airy_ai_prime".

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.special.bessel import bessel
    >>> bessel(tp.tensor([0.0, 1.0]), "j0")
    tensor([1.0000, 0.7652])
    """
    check_tensor(input, function)
    if input.dtype.category == COMPLEX:
        raise NotImplementedError(f"{function}() is not implemented for dtype {input.dtype.name}")
    input = cast(input, to_floating(input.dtype))
    return Spec((input, function), input._shape, input.dtype)


@composite(inplace=True)
def i0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.i0(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return bessel(input, "i0")


@composite(method=False, name="special_i0e")
def i0e(input: Tensor) -> Tensor:
    """Return ``exp(-abs(input)) * i0(input)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.i0e(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """
    return bessel(input, "i0e")


@composite(method=False, name="special_i1")
def i1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.i1(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    return bessel(input, "i1")


@composite(method=False, name="special_i1e")
def i1e(input: Tensor) -> Tensor:
    """Return ``exp(-abs(input)) * i1(input)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.i1e(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """
    return bessel(input, "i1e")


@composite(method=False, name="special_bessel_j0")
def bessel_j0(input: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.bessel_j0(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """
    return bessel(input, "j0")


@composite(method=False, name="special_bessel_j1")
def bessel_j1(input: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.bessel_j1(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """
    return bessel(input, "j1")


@composite(method=False, name="special_bessel_y0")
def bessel_y0(input: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.bessel_y0(tp.tensor([0.0, 1.0]))
    tensor([  -inf, 0.0883])
    """
    return bessel(input, "y0")


@composite(method=False, name="special_bessel_y1")
def bessel_y1(input: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.bessel_y1(tp.tensor([0.0, 1.0]))
    tensor([   -inf, -0.7812])
    """
    return bessel(input, "y1")


@composite(method=False, name="special_modified_bessel_i0")
def modified_bessel_i0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.modified_bessel_i0(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return bessel(input, "i0")


@composite(method=False, name="special_modified_bessel_i1")
def modified_bessel_i1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.modified_bessel_i1(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    return bessel(input, "i1")


@composite(method=False, name="special_modified_bessel_k0")
def modified_bessel_k0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.modified_bessel_k0(tp.tensor([0.0, 1.0]))
    tensor([   inf, 0.4210])
    """
    return bessel(input, "k0")


@composite(method=False, name="special_modified_bessel_k1")
def modified_bessel_k1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.modified_bessel_k1(tp.tensor([0.0, 1.0]))
    tensor([   inf, 0.6019])
    """
    return bessel(input, "k1")


@composite(method=False, name="special_scaled_modified_bessel_k0")
def scaled_modified_bessel_k0(input: Tensor) -> Tensor:
    """Return ``exp(input) * modified_bessel_k0(input)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.scaled_modified_bessel_k0(tp.tensor([0.0, 1.0]))
    tensor([   inf, 1.1445])
    """
    return bessel(input, "k0e")


@composite(method=False, name="special_scaled_modified_bessel_k1")
def scaled_modified_bessel_k1(input: Tensor) -> Tensor:
    """Return ``exp(input) * modified_bessel_k1(input)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.scaled_modified_bessel_k1(tp.tensor([0.0, 1.0]))
    tensor([   inf, 1.6362])
    """
    return bessel(input, "k1e")


@composite(method=False, name="special_airy_ai")
def airy_ai(input: Tensor) -> Tensor:
    """Return the Airy function Ai.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.airy_ai(tp.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """
    return bessel(input, "airy_ai")


@composite(method=False, name="special_spherical_bessel_j0")
@in_float32
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """Return the spherical Bessel function of the first kind of order 0, ``sin(input) / input``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.spherical_bessel_j0(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    check_tensor(input, "spherical_bessel_j0")
    (input,) = elementwise("spherical_bessel_j0", input, floating=True, without=(COMPLEX,)).values
    # Near 0 the quotient is replaced by its series, which leaves it differentiable there.
    near = lt(abs(input), 0.5)
    x = square(where(near, input, 0.0))
    series = add(mul(x, 1 / 6227020800), -1 / 39916800)
    for coefficient in (1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0):
        series = add(mul(series, x), coefficient)
    far = where(near, 1.0, input)
    wave = where(isinf(far), 0.0, sin(far))
    return where(near, series, div(wave, far))
