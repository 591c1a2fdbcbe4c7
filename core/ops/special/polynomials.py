"""Orthogonal polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device.dtypes import COMPLEX, Number
from ...dispatch.op_registry import Spec, composite, primitive
from ...tensor.base import TensorBase
from ..arithmetic.pointwise import mul, sub
from ..rules import cast, elementwise, to_floating

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__: list[str] = []


@primitive("input, n, family", method=False)
def orthogonal_polynomial(input: Tensor | Number, n: Tensor | Number, family: str) -> Spec:
    """Return the polynomial of degree `n` of a family; what the functions per family call.

    Parameters
    ----------
    input, n : Tensor or number
        At least one tensor; broadcast against each other. The fraction of a degree does not count,
        and a negative degree gives 0.
    family : str
        "chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h", "hermite_he",
        "laguerre_l" or "legendre_p".

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.ops.special.polynomials import orthogonal_polynomial
    >>> orthogonal_polynomial(tp.tensor([0.5]), 2, "legendre_p")
    tensor([-0.1250])
    """
    spec = elementwise(f"{family} polynomial", input, n, floating=True, without=(COMPLEX,))
    shape, dtype = spec.outputs[0]
    return Spec((*spec.values, family), shape, dtype, key=dtype, device=spec.key.device)


def _shifted(input: Tensor | Number) -> Tensor | Number:
    if not isinstance(input, TensorBase):
        return input * 2 - 1
    # Floating first: twice an integer, or one less than an unsigned zero, may not fit its dtype.
    return sub(mul(cast(input, to_floating(input.dtype)), 2), 1)


@composite(method=False, name="special_chebyshev_polynomial_t")
def chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the first kind of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.chebyshev_polynomial_t(tp.tensor([0.5]), 2)
    tensor([-0.5000])
    """
    return orthogonal_polynomial(input, n, "chebyshev_t")


@composite(method=False, name="special_shifted_chebyshev_polynomial_t")
def shifted_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the shifted Chebyshev polynomial of the first kind of degree `n`.

    It is the Chebyshev polynomial of the first kind at ``2 * input - 1``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.shifted_chebyshev_polynomial_t(tp.tensor([0.75]), 2)
    tensor([-0.5000])
    """
    return orthogonal_polynomial(_shifted(input), n, "chebyshev_t")


@composite(method=False, name="special_chebyshev_polynomial_u")
def chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the second kind of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.chebyshev_polynomial_u(tp.tensor([0.5]), 2)
    tensor([0.])
    """
    return orthogonal_polynomial(input, n, "chebyshev_u")


@composite(method=False, name="special_shifted_chebyshev_polynomial_u")
def shifted_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the shifted Chebyshev polynomial of the second kind of degree `n`.

    It is the Chebyshev polynomial of the second kind at ``2 * input - 1``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.shifted_chebyshev_polynomial_u(tp.tensor([0.75]), 2)
    tensor([0.])
    """
    return orthogonal_polynomial(_shifted(input), n, "chebyshev_u")


@composite(method=False, name="special_chebyshev_polynomial_v")
def chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the third kind of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.chebyshev_polynomial_v(tp.tensor([0.5]), 2)
    tensor([-1.])
    """
    return orthogonal_polynomial(input, n, "chebyshev_v")


@composite(method=False, name="special_shifted_chebyshev_polynomial_v")
def shifted_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the shifted Chebyshev polynomial of the third kind of degree `n`.

    It is the Chebyshev polynomial of the third kind at ``2 * input - 1``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.shifted_chebyshev_polynomial_v(tp.tensor([0.75]), 2)
    tensor([-1.])
    """
    return orthogonal_polynomial(_shifted(input), n, "chebyshev_v")


@composite(method=False, name="special_chebyshev_polynomial_w")
def chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the fourth kind of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.chebyshev_polynomial_w(tp.tensor([0.5]), 2)
    tensor([1.])
    """
    return orthogonal_polynomial(input, n, "chebyshev_w")


@composite(method=False, name="special_shifted_chebyshev_polynomial_w")
def shifted_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the shifted Chebyshev polynomial of the fourth kind of degree `n`.

    It is the Chebyshev polynomial of the fourth kind at ``2 * input - 1``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.shifted_chebyshev_polynomial_w(tp.tensor([0.75]), 2)
    tensor([1.])
    """
    return orthogonal_polynomial(_shifted(input), n, "chebyshev_w")


@composite(method=False, name="special_hermite_polynomial_h")
def hermite_polynomial_h(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Hermite polynomial of the physicists of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.hermite_polynomial_h(tp.tensor([0.5]), 2)
    tensor([-1.])
    """
    return orthogonal_polynomial(input, n, "hermite_h")


@composite(method=False, name="special_hermite_polynomial_he")
def hermite_polynomial_he(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Hermite polynomial of probability theory of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.hermite_polynomial_he(tp.tensor([0.5]), 2)
    tensor([-0.7500])
    """
    return orthogonal_polynomial(input, n, "hermite_he")


@composite(method=False, name="special_laguerre_polynomial_l")
def laguerre_polynomial_l(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Laguerre polynomial of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.laguerre_polynomial_l(tp.tensor([0.5]), 2)
    tensor([0.1250])
    """
    return orthogonal_polynomial(input, n, "laguerre_l")


@composite(method=False, name="special_legendre_polynomial_p")
def legendre_polynomial_p(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Legendre polynomial of degree `n`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.special.legendre_polynomial_p(tp.tensor([0.5]), 2)
    tensor([-0.1250])
    """
    return orthogonal_polynomial(input, n, "legendre_p")
