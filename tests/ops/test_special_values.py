"""Elementary functions where terms are infinite, not a number, or small beside 1."""

import cmath
import itertools
import math

import pytest

import tensorplug as tp

INFINITE, NAN = math.inf, math.nan
COMPLEX = [
    complex(real, imag)
    for real in (-INFINITE, -1000.0, -2.0, 0.5, 1000.0, NAN)
    for imag in (0.0, 1.0, -3.0, NAN)
]


def log_of_sum(terms):
    """Return log(sum(exp(terms))), with terms that are zero left out."""
    if any(cmath.isnan(term) for term in terms):
        return complex(NAN, NAN)
    peak = max(term.real for term in terms)
    if peak == -INFINITE:
        return complex(peak, 0)
    return cmath.log(sum(cmath.exp(t - peak) for t in terms if t.real > -INFINITE)) + peak


SUMS = {
    "logaddexp": lambda pairs: tp.logaddexp(*pairs.unbind(1)),
    "logcumsumexp": lambda pairs: tp.logcumsumexp(pairs, 1)[:, 1],
    "batched": lambda pairs: tp.vmap(tp.logaddexp)(*pairs.unbind(1)),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
def test_logarithm_of_a_sum_of_complex_exponentials(name, dtype):
    pairs = list(itertools.product(COMPLEX, repeat=2))
    results = SUMS[name](tp.tensor(pairs, dtype=dtype)).tolist()
    for pair, result in zip(pairs, results, strict=True):
        wanted = log_of_sum(pair)
        if cmath.isnan(wanted):
            assert all(map(math.isnan, (result.real, result.imag))), (pair, result)
        elif cmath.isinf(wanted):
            assert result.real == wanted.real, (pair, result)
            assert not math.isnan(result.imag), (pair, result)
        else:
            apart = cmath.exp(result - wanted)
            assert abs(apart - 1) < (1e-3 if dtype is tp.complex64 else 1e-9), (
                pair,
                result,
                wanted,
            )


SMALL = [0.0, 1e-30, -1e-30, 3e-12, -2e-7, 1e-3, -0.25, 0.75, -2.5, 40.0]


@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
def test_log1p_of_small_complex_numbers(dtype):
    """The reference is the series, or the logarithm where 1 takes no digits."""
    inputs = [complex(a, b) for a in SMALL for b in SMALL]
    given = tp.tensor(inputs, dtype=dtype)
    tolerance = 1e-6 if dtype is tp.complex64 else 1e-14
    for z, result in zip(given.tolist(), tp.log1p(given).tolist(), strict=True):
        if abs(z) < 0.01:
            wanted = sum(-((-z) ** n) / n for n in range(1, 12))
        else:
            wanted = cmath.log(1 + z)
        # Components for themselves: one may be small beside the other.
        assert math.isclose(result.imag, wanted.imag, rel_tol=30 * tolerance), (z, result, wanted)
        scale = abs(wanted.real) if abs(z.imag) < 1e-3 * abs(z.real) else abs(wanted)
        assert abs(result.real - wanted.real) <= 30 * tolerance * scale, (z, result, wanted)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
def test_airy_function_vanishes_at_large_arguments(dtype):
    assert tp.special.airy_ai(tp.tensor([300.0, 1e4, 1e10, 1e30], dtype=dtype)).tolist() == [0] * 4


FAR = {  # Airy's function and its derivative, of mpmath with 60 digits
    -2000000.0: (-0.012459271424776399, -11.819106110145047),
    -10000000.0: (0.005418514944210602, -26.701707811976565),
    -30000000.0: (0.004535600107988238, -33.560467803766045),
    -100000000.0: (-0.005554128800056995, 9.912829519132075),
}


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
def test_airy_function_goes_on_far_below_zero(dtype):
    """What is known of it is the phase, to some units of its last place."""
    x = tp.tensor(list(FAR), dtype=dtype, requires_grad=True)
    values = tp.special.airy_ai(x)
    values.sum().backward()
    for at, value, slope in zip(FAR, values.tolist(), x.grad.tolist(), strict=True):
        size = (-at) ** 0.25
        unsure = 4 * 2.0**-52 * (-at) ** 1.5 + 1e-6
        assert abs(value - FAR[at][0]) < unsure / size
        assert abs(slope - FAR[at][1]) < unsure * size
    beyond = tp.tensor([-1e15, -1e20, -1e30], dtype=dtype)
    assert (tp.special.airy_ai(beyond).abs() * (-beyond) ** 0.25 < 0.6).all()


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16], ids=str)
def test_modified_bessel_functions_of_infinities(dtype):
    ends = tp.tensor([INFINITE, -INFINITE], dtype=dtype)
    assert tp.special.i0(ends).tolist() == [INFINITE, INFINITE]
    assert tp.special.i1(ends).tolist() == [INFINITE, -INFINITE]
    for decayed in (tp.special.i0e, tp.special.i1e):
        assert decayed(ends).tolist() == [0, 0]


def logarithmic(z, power):
    """Return z to a power by its logarithm, as C99 has it, in which 0 is infinitely far below."""
    if z == 0:
        return complex(INFINITE, NAN)
    return 0j if cmath.isinf(z) else cmath.exp(power * cmath.log(z))


LIMITS = [0j, complex(-0.0, 0.0), *map(complex, (INFINITE, -INFINITE, 2.0, -0.5))]
LIMITS += [complex(1, INFINITE), complex(-INFINITE, INFINITE), 1 + 2j]


@pytest.mark.parametrize("kind", ["number", "tensor", "transposed", "number below"])
@pytest.mark.parametrize("power", [-1, -2, -3, -0.5, -2.5, -1 + 1j])
@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
def test_negative_powers_of_complex_zeros_and_infinities(dtype, power, kind):
    base = tp.tensor([LIMITS, LIMITS[::-1]], dtype=dtype)
    if kind == "transposed":
        base = base.t().contiguous().t()
    if kind == "number below":
        results = [[(z**power).item() for z in row] for row in base]
    else:
        results = (base ** (power if kind == "number" else tp.full_like(base, power))).tolist()
    for row, line in zip(results, base.tolist(), strict=True):
        for found, z in zip(row, line, strict=True):
            expected = logarithmic(z, power)
            if z == 0:
                assert found.real == INFINITE
                assert math.isnan(found.imag)
            else:
                assert abs(found - expected) <= 1e-5 * abs(expected)


@pytest.mark.parametrize("dtype", [tp.complex32, tp.complex64, tp.complex128], ids=str)
def test_reciprocals_of_complex_zeros_are_infinite(dtype):
    zeros = tp.tensor([0j, complex(-0.0, 0.0)], dtype=dtype)
    for function in (tp.rsqrt, tp.reciprocal, tp.Tensor.rsqrt_, lambda z: z**-1, lambda z: 1 / z):
        for found in function(zeros.clone()).tolist():
            assert abs(found.real) == INFINITE
            assert math.isnan(found.imag)
    ends = tp.tensor([complex(INFINITE, 0), complex(-INFINITE, 0)], dtype=dtype)
    assert tp.rsqrt(ends).abs().tolist() == [0, 0]
    finite = tp.tensor([1 + 2j, -3 + 0.5j], dtype=dtype)
    for found, z in zip(tp.rsqrt(finite).tolist(), finite.tolist(), strict=True):
        assert found == pytest.approx(
            1 / cmath.sqrt(z), rel=2e-3 if dtype is tp.complex32 else 1e-5
        )
