"""Rounding to whole numbers."""

from __future__ import annotations

import math
from sys import float_info
from typing import TYPE_CHECKING

from ...device.dtypes import BOOL, COMPLEX, FLOATING, float32
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out
from ..arithmetic.division import div
from ..arithmetic.pointwise import mul, neg, sub
from ..comparison import lt
from ..masking import where
from ..rules import cast, check_tensor, elementwise

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["ceil", "fix", "floor", "frac", "rint", "round", "trunc"]

_NOT_REAL = (BOOL, COMPLEX)


def _check_real(input: object, name: str) -> None:
    check_tensor(input, name)
    elementwise(name, input, without=_NOT_REAL)


@primitive("input", pointwise=True, inplace=True)
def floor(input: Tensor) -> Spec:
    """Return the largest whole number that is not above each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.floor(tp.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    check_tensor(input, "floor")
    return elementwise("floor", input, without=_NOT_REAL)


@composite(inplace=True)
def ceil(input: Tensor) -> Tensor:
    """Return the smallest whole number that is not below each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ceil(tp.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    _check_real(input, "ceil")
    return neg(floor(neg(input))) if input.dtype.category == FLOATING else input.clone()


@composite(inplace=True, aliases=("fix",))
def trunc(input: Tensor) -> Tensor:
    """Return each element without its fraction.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.trunc(tp.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    _check_real(input, "trunc")
    if input.dtype.category != FLOATING:
        return input.clone()
    return where(lt(input, 0), ceil(input), floor(input))


@primitive("input", pointwise=True, method=False)
def rint(input: Tensor) -> Spec:
    """Return the whole number nearest to each element, the even one of two that are as near.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rint(tp.tensor([0.5, 1.5]))
    tensor([0., 2.])
    """
    check_tensor(input, "round")
    return elementwise("round", input, without=_NOT_REAL)


@composite(elementwise=True, inplace=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return each element rounded to `decimals` decimals, half to even.

    Parameters
    ----------
    input : Tensor
        Real; integers only with ``decimals=0``, which leaves them as they are.
    decimals : int
        Negative values round to tens, hundreds and so on.

    Notes
    -----
    With decimals the element is scaled by a power of ten and back, as in torch, so that 2.675, that
    is stored as a little less, may go either way.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.round(tp.tensor([0.5, 1.5, 2.26])), tp.round(tp.tensor([1.2345]), decimals=2)
    (tensor([0., 2., 2.]), tensor([1.2300]))
    """
    if decimals == 0:
        return rint(input)
    check_tensor(input, "round")
    if input.dtype.category != FLOATING:
        raise NotImplementedError(
            f"round() with decimals={decimals} is not implemented for dtype {input.dtype.name}"
        )
    if input.dtype.itemsize == 2:  # scaled, half precision would overflow
        return cast(round(cast(input, float32), decimals=decimals), input.dtype)
    places = abs(decimals)
    scale = 10.0**places if places <= float_info.max_10_exp else math.inf  # which leaves NaN
    if decimals > 0:
        return div(rint(mul(input, scale)), scale)
    return mul(rint(div(input, scale)), scale)


@composite(inplace=True)
def frac(input: Tensor) -> Tensor:
    """Return the fraction of each element, with the element's sign.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.frac(tp.tensor([-1.5, 2.25]))
    tensor([-0.5000,  0.2500])
    """
    check_tensor(input, "frac")
    if input.dtype.category != FLOATING:
        raise NotImplementedError(f"frac() is not implemented for dtype {input.dtype.name}")
    return sub(input, trunc(input))


fix = trunc


exact_out(ceil, frac, round, trunc, floor, rint)
