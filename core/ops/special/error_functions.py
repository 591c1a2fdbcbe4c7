"""The error function and what statistics makes of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...device.dtypes import COMPLEX, Number
from ...device.scalars import held_bound
from ...dispatch.op_registry import Spec, composite, primitive
from ..arithmetic.division import div
from ..arithmetic.pointwise import mul, neg, sub
from ..bitwise import bitwise_or
from ..clamp import clamp
from ..comparison import gt, lt
from ..elementary.exponential import log, log1p
from ..masking import where
from ..numeric import times_log
from ..rules import check_tensor, elementwise, in_float32, that_broadcast

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["erf", "erfc", "erfinv", "logit"]

_ROOT_HALF = math.sqrt(0.5)


def _real(input: Tensor, name: str) -> Spec:
    check_tensor(input, name)
    return elementwise(name, input, floating=True, without=(COMPLEX,))


@primitive("input", pointwise=True, inplace=True)
def erf(input: Tensor) -> Spec:
    """Return the error function ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.erf(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return _real(input, "erf")


@primitive("input", pointwise=True, inplace=True)
def erfc(input: Tensor) -> Spec:
    """Return ``1 - erf(input)``, accurate where that is small.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.erfc(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    return _real(input, "erfc")


@primitive("input", pointwise=True, inplace=True)
def erfinv(input: Tensor) -> Spec:
    """Return the number whose error function is the element; nan outside of [-1, 1].

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.erfinv(tp.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    return _real(input, "erfinv")


@primitive("input", pointwise=True, method=False, name="special_erfcx")
def erfcx(input: Tensor) -> Spec:
    """Return ``exp(input**2) * erfc(input)``, the scaled complementary error function.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.erfcx(tp.tensor([0.0, 10.0]))
    tensor([1.0000, 0.0561])
    """
    return _real(input, "erfcx")


@composite(inplace=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return ``log(input / (1 - input))``, the inverse of the logistic function.

    Parameters
    ----------
    input : Tensor
        In [0, 1]; nan elsewhere.
    eps : float, optional
        Clamp the input to [eps, 1 - eps] first; where that is empty, what is below `eps` becomes `eps`,
        the rest ``1 - eps``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logit(tp.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    (value,) = _real(input, "logit").values
    if eps is not None:
        above = clamp(value, eps, 1 - eps)
        value = where(lt(value, eps), eps, above) if eps > 0.5 else above
    return log(div(value, sub(1, value)))


@composite(method=False, elementwise=True)
def logit_backward(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    """Return `g` times the derivative of :func:`logit`: nan where that is, 0 where `eps` clamps."""
    dtype, beyond = input._key.dtype, 0.0
    if eps is None:
        eps, beyond = 0.0, math.nan
    outside = bitwise_or(lt(input, held_bound(eps, dtype)), gt(input, held_bound(1 - eps, dtype)))
    value = where(outside, 0.5, input)
    return where(outside, beyond, div(g, mul(value, sub(1, value))))


@composite(method=False, name="special_ndtr")
@in_float32
def ndtr(input: Tensor) -> Tensor:
    """Return the area under the standard normal density from minus infinity to each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.ndtr(tp.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    (value,) = _real(input, "ndtr").values
    return mul(erfc(mul(value, -_ROOT_HALF)), 0.5)


@composite(method=False, name="special_log_ndtr")
def log_ndtr(input: Tensor) -> Tensor:
    """Return the logarithm of :func:`ndtr`, accurate far down in the tail.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.log_ndtr(tp.tensor([-100.0, 0.0]))
    tensor([-5.0055e+03, -6.9315e-01])
    """
    (value,) = _real(input, "log_ndtr").values
    scaled = mul(value, _ROOT_HALF)
    # In the lower tail erfc underflows; its scaled form does not.
    tail = sub(log(mul(erfcx(neg(scaled)), 0.5)), mul(scaled, scaled))
    return where(lt(value, -1), tail, log1p(mul(erfc(scaled), -0.5)))


@composite(method=False, name="special_ndtri")
def ndtri(input: Tensor) -> Tensor:
    """Return the number up to which the area under the standard normal density is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.ndtri(tp.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """
    (value,) = _real(input, "ndtri").values
    return mul(erfinv(sub(mul(value, 2), 1)), math.sqrt(2))


@composite(method=False, name="special_entr")
def entr(input: Tensor) -> Tensor:
    """Return ``-input * log(input)``: 0 at 0 and minus infinity of negative elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.entr(tp.tensor([-1.0, 0.0, 0.5]))
    tensor([  -inf, 0.0000, 0.3466])
    """
    (value,) = _real(input, "entr").values
    inside = times_log("entr", neg(value), value, log)
    return where(lt(value, 0), -math.inf, inside)


@composite(rule=that_broadcast, method=False, name="special_xlog1py")
def xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return ``input * log(1 + other)``, 0 where `input` is 0, nan where `other` is nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.xlog1py(tp.tensor([0.0, 2.0]), tp.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """
    return times_log("xlog1py", input, other, log1p)
