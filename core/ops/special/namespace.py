"""The namespace ``tp.special``: special functions, under the names of ``torch.special``.

The functions live by topic in :mod:`.error_functions`, :mod:`.gamma`, :mod:`.bessel` and
:mod:`.polynomials`; some are ops of the top level too.
"""

from __future__ import annotations

from typing import Any

from ...dispatch.op_registry import defined_by
from ..elementary.activation import sigmoid as expit
from ..elementary.exponential import exp2, expm1, log1p
from ..elementary.rounding import round
from ..numeric import sinc, xlogy
from ..softmax import log_softmax, logsumexp, softmax
from .bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from .error_functions import entr, erf, erfc, erfcx, erfinv, log_ndtr, logit, ndtr, ndtri, xlog1py
from .gamma import (
    digamma,
    digamma as psi,
    igamma as gammainc,
    igammac as gammaincc,
    lgamma as gammaln,
    mvlgamma as multigammaln,
    polygamma,
    zeta,
)
from .polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

_SPELLINGS: dict[str, Any] = {
    "expit": expit,
    "gammainc": gammainc,
    "gammaincc": gammaincc,
    "gammaln": gammaln,
    "multigammaln": multigammaln,
    "psi": psi,
}
for _name, _op in _SPELLINGS.items():
    defined_by(_op, name=f"special.{_name}")(_op)
