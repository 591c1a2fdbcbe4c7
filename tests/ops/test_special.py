"""Special functions where series, reflections and scales meet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import tensorplug as tp
from tensorplug.autograd import gradcheck, gradgradcheck
from tensorplug.core.ops.special import namespace as functions

REAL_LINE = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 3.5, 5.0, 8.0, 20.0, -0.25, -1.5, -7.0, math.inf])


def ours(name: str, *arguments: Any) -> Any:
    tensors = [
        tp.tensor(a.tolist(), dtype=tp.float64) if isinstance(a, np.ndarray) else a
        for a in arguments
    ]
    return getattr(functions, name)(*tensors).numpy()


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("bessel_j0", special.j0),
        ("bessel_j1", special.j1),
        ("bessel_y0", special.y0),
        ("bessel_y1", special.y1),
        ("i0", lambda x: np.where(np.isinf(x), np.inf, special.i0(x))),
        ("i0e", special.i0e),
        ("i1", lambda x: np.where(np.isinf(x), x, special.i1(x))),
        ("i1e", special.i1e),
        ("modified_bessel_k0", special.k0),
        ("modified_bessel_k1", special.k1),
        ("scaled_modified_bessel_k0", special.k0e),
        ("scaled_modified_bessel_k1", special.k1e),
        ("airy_ai", lambda x: np.where(np.isinf(x), 0, special.airy(x)[0])),
        ("spherical_bessel_j0", lambda x: np.where(np.isinf(x), 0, special.spherical_jn(0, x))),
        ("erfcx", special.erfcx),
        ("ndtr", special.ndtr),
        ("log_ndtr", special.log_ndtr),
        ("psi", special.digamma),
        ("gammaln", special.gammaln),
        ("expit", special.expit),
        ("entr", special.entr),
    ],
)
def test_against_scipy(name: str, reference: Any) -> None:
    with np.errstate(all="ignore"):
        expected = reference(REAL_LINE)
    np.testing.assert_allclose(ours(name, REAL_LINE), expected, rtol=1e-12, atol=1e-300)


SMALL = 10.0 ** -np.linspace(0.5, 307, 400)
FAR_OUT = {
    "gammaln": (
        special.gammaln,
        np.concatenate([SMALL, 1 / SMALL[:-5], np.linspace(2.5, 30, 997)]),
    ),
    "ndtri": (special.ndtri, np.concatenate([SMALL, 1 - SMALL[:19], np.linspace(0.01, 0.99, 997)])),
}


@pytest.mark.parametrize("name", FAR_OUT)
def test_double_is_exact_to_its_last_bits_far_out(name: str) -> None:
    reference, x = FAR_OUT[name]
    expected = reference(x)
    off = np.abs(ours(name, x) - expected)
    assert (off <= 16 * np.spacing(np.abs(expected)) + 1e-18).all()


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_pairs_at_the_ends(name: str, dtype: tp.DType) -> None:
    """What zeros, infinities, NaN and negative numbers make of each other is as in SciPy."""
    ends = [0.0, -0.0, 1.0, -1.0, -0.5, -2.5, 0.5, 2.0, 3.0, 40.0, 1e-30, math.inf, math.nan]
    if name != "zeta":
        ends += [200.0, 220.0, 1e10, 1e35, -math.inf]
    a, b = [given.ravel() for given in np.meshgrid(ends, ends)]
    with np.errstate(all="ignore"):
        expected = getattr(special, name)(a, b)
        expected = expected.astype(np.float32 if dtype is tp.float32 else np.float64)
    first, second = tp.tensor(a.tolist(), dtype=dtype), tp.tensor(b.tolist(), dtype=dtype)
    found = getattr(functions, name)(first, second).numpy()
    tiny = 1e-45 if dtype is tp.float32 else 1e-300
    np.testing.assert_allclose(found, expected, 1e-6 if dtype is tp.float32 else 1e-12, tiny)


def test_reflection_of_trigamma() -> None:
    x = np.array([-3.7, -0.5, 0.1, 0.49, 0.5, 0.51, 4.0])
    k = np.arange(400_000)[:, None]
    expected = np.sum(1 / (x + k) ** 2, axis=0) + 1 / (400_000 - 0.5 + x)
    np.testing.assert_allclose(ours("polygamma", 1, x), expected, rtol=1e-9)


def test_decompositions_agree_with_the_kernels() -> None:
    from tensorplug.core.dispatch.op_registry import get_op

    x = tp.linspace(-6, 6, 41, dtype=tp.float64)
    for name in ("special_ndtr", "special_log_ndtr"):
        op = get_op(name)
        np.testing.assert_allclose(op.function(x).numpy(), op.call(x).numpy(), rtol=1e-10)
    p = tp.linspace(0.01, 0.99, 31, dtype=tp.float64)
    op = get_op("special_ndtri")
    np.testing.assert_allclose(op.function(p).numpy(), op.call(p).numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "name", sorted(n for n in functions.__all__ if "bessel" in n or n[0] == "i" or n == "airy_ai")
)
def test_derivatives(name: str) -> None:
    function = getattr(functions, name)
    x = tp.tensor([0.3, 1.2, 4.5], dtype=tp.float64, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize(
    "name", ["spherical_bessel_j0", "bessel_j0", "bessel_j1", "i0", "i1", "i1e"]
)
def test_derivatives_at_zero_are_the_limits(name: str) -> None:
    x = tp.zeros(1, dtype=tp.float64, requires_grad=True)
    (slope,) = tp.autograd.grad(getattr(functions, name)(x), x)
    assert slope.item() == (0.5 if "1" in name else 0.0)


def test_derivatives_that_are_not_known_raise() -> None:
    a = tp.ones(2, dtype=tp.float64, requires_grad=True)
    for call in (
        lambda: functions.gammainc(a, tp.ones(2, dtype=tp.float64)),
        lambda: functions.zeta(a + 1, tp.ones(2, dtype=tp.float64)),
        lambda: functions.legendre_polynomial_p(a, 2),
    ):
        with pytest.raises(NotImplementedError, match="no derivative is known"):
            call().sum().backward()
    x = tp.full((2,), 2.0, dtype=tp.float64, requires_grad=True)
    assert gradcheck(lambda x: functions.gammainc(tp.tensor([1.5, 2.0], dtype=tp.float64), x), (x,))


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16], ids=str)
@pytest.mark.parametrize("eps", [0.7, 0.999, 0.5, 0.2])
def test_logit_looks_at_the_lower_bound_first(eps: float, dtype: tp.dtype) -> None:
    x = tp.tensor([0.0, 0.2, 0.69, 0.71, 1.0, float("nan")], dtype=dtype)
    bounded = [eps if n < eps else min(n, 1 - eps) for n in x[:5].tolist()]
    expected = tp.logit(tp.tensor(bounded, dtype=dtype))
    found = tp.logit(x, eps)
    near = 0.1 if dtype is tp.bfloat16 else 1e-5
    assert tp.allclose(found[:5], expected, near, near)
    assert found[5].isnan()


def test_methods_with_other_places_of_arguments() -> None:
    x = tp.tensor([2.0])
    assert x.polygamma(1).item() == tp.polygamma(1, x).item()
    assert tp.tensor([1.0, -1.0]).where(tp.tensor([True, False]), 0.0).tolist() == [1.0, 0.0]


def test_polynomials_of_many_degrees_at_once() -> None:
    x = np.linspace(-1, 1, 9)
    n = np.arange(12.0)
    for name, reference in (
        ("chebyshev_polynomial_t", special.eval_chebyt),
        ("legendre_polynomial_p", special.eval_legendre),
        ("laguerre_polynomial_l", special.eval_laguerre),
        ("hermite_polynomial_h", special.eval_hermite),
    ):
        expected = reference(n.astype(int), x[:, None])
        np.testing.assert_allclose(ours(name, x[:, None], n), expected, rtol=1e-9, atol=1e-9)
    assert ours("legendre_polynomial_p", x, -1).tolist() == [0.0] * 9
    assert ours("legendre_polynomial_p", np.zeros(0), 3).shape == (0,)


CHEBYSHEV = (
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
)
DEGREE = 6_000_004  # beyond steps


def of_degree(name, x, n, dtype=tp.float64):
    return getattr(tp.special, name)(tp.tensor(x, dtype=dtype), tp.tensor(float(n), dtype=dtype))


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
@pytest.mark.parametrize("name", [n for n in dir(tp.special) if "polynomial_" in n])
@pytest.mark.parametrize("degree", [3e38, 1e30, float("inf"), float("nan"), -1.0, -3e38])
def test_degrees_that_are_no_integers_have_no_polynomial(name, degree, dtype) -> None:
    assert of_degree(name, [-1.0, 0.0, 0.5, 2.0], degree, dtype).tolist() == [0.0] * 4


@pytest.mark.parametrize("name", CHEBYSHEV)
def test_high_degrees_by_angles(name) -> None:
    angle = np.array([0.3, 1.0, 2.5])
    n, half = DEGREE, angle / 2
    expected = {
        "t": np.cos(n * angle),
        "u": np.sin((n + 1) * angle) / np.sin(angle),
        "v": np.cos((n + 0.5) * angle) / np.cos(half),
        "w": np.sin((n + 0.5) * angle) / np.sin(half),
    }[name[-1]]
    np.testing.assert_allclose(of_degree(name, np.cos(angle), n).tolist(), expected, atol=1e-8)


@pytest.mark.parametrize("odd", [0, 1])
def test_high_degrees_at_ends(odd) -> None:
    n, sign = DEGREE + odd, -1.0 if odd else 1.0
    ends = [1.0, -1.0]
    for name, expected in (
        ("chebyshev_polynomial_t", [1.0, sign]),
        ("chebyshev_polynomial_u", [n + 1.0, (n + 1) * sign]),
        ("chebyshev_polynomial_v", [1.0, (2 * n + 1) * sign]),
        ("chebyshev_polynomial_w", [2 * n + 1.0, sign]),
        ("legendre_polynomial_p", [1.0, sign]),
    ):
        assert of_degree(name, ends, n).tolist() == expected, name
    assert of_degree("laguerre_polynomial_l", 0.0, n).item() == 1.0


def test_values_beyond_numbers_stop_the_steps() -> None:
    for name in ("hermite_polynomial_h", "hermite_polynomial_he", "legendre_polynomial_p"):
        assert of_degree(name, [3.0, -2.0], 500_000).isnan().all(), name


def test_every_name_of_the_namespace() -> None:
    torch = pytest.importorskip("torch", reason="its list of names is the reference")
    public = {n for n in torch.special.__all__ if not n.startswith("_")}
    assert public <= set(functions.__all__), public - set(functions.__all__)
    assert all(hasattr(tp.special, name) for name in functions.__all__)
