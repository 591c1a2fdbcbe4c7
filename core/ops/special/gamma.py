"""The gamma function and its relatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import COMPLEX, Number
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.state import dispatch_state
from ..arithmetic.division import div
from ..arithmetic.pointwise import add, mul, sub
from ..arithmetic.powers import square
from ..comparison import lt
from ..elementary.circular import sin
from ..masking import where
from ..rules import cast, check_tensor, elementwise, in_float32, to_floating

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma"]


@primitive("input", pointwise=True, inplace=True)
def lgamma(input: Tensor) -> Spec:
    """Return the logarithm of the absolute value of the gamma function.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.lgamma(tp.tensor([1.0, 4.0]))
    tensor([0.0000, 1.7918])
    """
    check_tensor(input, "lgamma")
    return elementwise("lgamma", input, floating=True, without=(COMPLEX,))


@primitive("input", pointwise=True, inplace=True)
def digamma(input: Tensor) -> Spec:
    """Return the derivative of :func:`lgamma`; minus infinity at 0, nan at negative whole numbers.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.digamma(tp.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """
    check_tensor(input, "digamma")
    return elementwise("digamma", input, floating=True, without=(COMPLEX,))


@primitive("input, other", pointwise=True, method=False, name="special_zeta")
def zeta(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the Hurwitz zeta function: the sum over k >= 0 of ``1 / (k + other) ** input``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.zeta(tp.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823])
    """
    return elementwise("zeta", input, other, floating=True, without=(COMPLEX,))


@composite(method=False)
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the `n`-th derivative of :func:`digamma`.

    Parameters
    ----------
    n : int
        At least 0, which gives digamma itself.
    input : Tensor
        Real.

    Raises
    ------
    RuntimeError
        If `n` is negative.

    Notes
    -----
    For n > 0 it is ``(-1)**(n+1) * n! * zeta(n + 1, input)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.polygamma(1, tp.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    check_tensor(input, "polygamma")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n. Got {n}")
    if n == 0:
        return digamma(input)
    if n == 1:
        return trigamma(cast(input, to_floating(input.dtype)))
    return mul(zeta(n + 1, input), (-1.0) ** (n + 1) * math.factorial(n))


@composite(method=False, elementwise=True)
@in_float32
def trigamma(input: Tensor) -> Tensor:
    """Return the derivative of :func:`digamma` of a tensor of floating dtype."""
    # Zeta is nan left of 0, where the reflection formula holds.
    left = lt(input, 0.5)
    mirrored = zeta(2, where(left, sub(1, input), input))
    square_of_sine = square(sin(mul(input, math.pi)))
    return where(left, sub(div(math.pi**2, square_of_sine), mirrored), mirrored)


def _polygamma_method(self: Any, n: int) -> Any:
    """Return the `n`-th derivative of digamma, see :func:`tensorplug.polygamma`."""
    return polygamma(n, self)


dispatch_state.add_method("polygamma", _polygamma_method)


@composite(rows=True, inplace=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension `p`.

    Parameters
    ----------
    input : Tensor
        Greater than ``(p - 1) / 2``.
    p : int
        At least 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mvlgamma(tp.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    check_tensor(input, "mvlgamma")
    if p < 1:
        raise RuntimeError(f"mvlgamma(): p has to be greater than or equal to 1, got {p}")
    total = lgamma(input)
    for j in range(1, p):
        total = add(total, lgamma(sub(input, j / 2)))
    return add(total, p * (p - 1) / 4 * math.log(math.pi))


@primitive("input, other", pointwise=True, inplace=True)
def igamma(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the regularized lower incomplete gamma function P(input, other).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.igamma(tp.tensor([1.0]), tp.tensor([2.0]))
    tensor([0.8647])
    """
    return elementwise("igamma", input, other, floating=True, without=(COMPLEX,))


@primitive("input, other", pointwise=True, inplace=True)
def igammac(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the regularized upper incomplete gamma function ``1 - igamma(input, other)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.igammac(tp.tensor([1.0]), tp.tensor([2.0]))
    tensor([0.1353])
    """
    return elementwise("igammac", input, other, floating=True, without=(COMPLEX,))
