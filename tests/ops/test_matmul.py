"""Matrix products and contractions where dtypes, shapes and notation meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorplug as tp

_random = np.random.default_rng(3)


def array(*shape: int) -> Any:
    return _random.standard_normal(shape)


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
    ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((5, 0, 3), (3, 4)), ((), (3,)), ((2, 3), (2, 3)),
    ((2, 2, 3), (3, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_as_torch(agree: Callable[..., None], shapes: Any) -> None:
    agree(
        lambda module, a, b: module.matmul(a, b),
        *map(np.ascontiguousarray, map(_make, shapes)),
        gradient=True,
    )


def _make(shape: tuple[int, ...]) -> Any:
    return array(*shape)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_multiply_exactly(dtype: str) -> None:
    a = _random.integers(0, 100, (3, 40)).astype(dtype)
    b = _random.integers(0, 100, (40, 2)).astype(dtype)
    result = tp.from_numpy(a) @ tp.from_numpy(b)
    assert result.numpy().tolist() == (a @ b).tolist()  # wraps around as C does


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16], ids=str)
def test_half_precision_sums_in_single(dtype: Any) -> None:
    ones = tp.ones(1, 5000, dtype=dtype)
    assert (ones @ ones.mT).item() == float(tp.tensor(5000.0, dtype=dtype))


def test_beta_zero_ignores_what_is_added_to() -> None:
    nan = tp.full((2, 2), float("nan"))
    assert tp.addmm(nan, tp.eye(2), tp.eye(2), beta=0).tolist() == [[1, 0], [0, 1]]


def test_addmm_in_place() -> None:
    total = tp.ones(2, 2)
    assert total.addmm_(tp.eye(2), tp.eye(2), beta=2, alpha=3) is total
    assert total.tolist() == [[5, 2], [2, 5]]


ADDED_TO = {
    "addmm": ((3, 4), (3, 2), (2, 4)),
    "addmv": ((3,), (3, 2), (2,)),
    "addr": ((3, 4), (3,), (4,)),
    "baddbmm": ((5, 3, 4), (5, 3, 2), (5, 2, 4)),
    "addbmm": ((3, 4), (5, 3, 2), (5, 2, 4)),
}
TERMS = {"addr": "i,j->ij", "baddbmm": "bij,bjk->bik", "addbmm": "bij,bjk->ik"}


@pytest.mark.parametrize("dtype", [tp.float64, tp.float32, tp.float16, tp.complex64, tp.int64])
@pytest.mark.parametrize("factors", [(1, 1), (1, 3), (2, 1), (2, 3), (0, 1), (0, 3)], ids=str)
@pytest.mark.parametrize("name", ADDED_TO)
def test_products_are_added_with_factors(
    name: str, factors: tuple[int, int], dtype: tp.dtype
) -> None:
    beta, alpha = factors
    shapes = ADDED_TO[name]
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, shape).astype(np.float64) for shape in shapes]
    tensors = [tp.tensor(array.tolist(), dtype=dtype) for array in arrays]
    product = (
        np.einsum(TERMS[name], *arrays[1:]) if name in TERMS else np.matmul(arrays[1], arrays[2])
    )
    # The whole one, one that is repeated, and one number.
    for kept in (slice(None), slice(-1, None)):
        first = arrays[0][kept] if len(shapes[0]) > 1 or kept.start is None else arrays[0][-1]
        input = tp.tensor(first.tolist(), dtype=dtype)
        found = getattr(tp, name)(input, *tensors[1:], beta=beta, alpha=alpha)
        expected = beta * np.broadcast_to(first, product.shape) + alpha * product
        assert found.dtype is dtype
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("factors", [(1, 3.0), (2.0, 1), (2.0, 3.0)], ids=str)
@pytest.mark.parametrize("name", ADDED_TO)
def test_added_products_have_gradients(name: str, factors: tuple[float, float]) -> None:
    beta, alpha = factors
    rng = np.random.default_rng(0)
    leaves = [tp.tensor(rng.standard_normal(s), requires_grad=True) for s in ADDED_TO[name]]
    add = getattr(tp, name)
    assert tp.autograd.gradcheck(lambda *args: add(*args, beta=beta, alpha=alpha), leaves)


def test_a_view_is_no_product() -> None:
    """The result never shares memory with an operand."""
    a = tp.eye(2)
    product = tp.chain_matmul(a, tp.eye(2))
    product.fill_(7)
    assert a.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "equation",
    ["ii->i", "ii", "ij->ji", "ij->j", "i,j->ij", "ij,jk", "bij,bjk->bik", "...ij,jk->...ik",
     "ab,bc,cd,de->ae", "Ab,bC", "bA,ba", "ij,ij->", "aij,bj->abi", "iij->ij", " i j , j k -> k i"],
)  # fmt: skip
def test_einsum_as_torch(agree: Callable[..., None], equation: str) -> None:
    sizes = dict(zip("abcdeijkAC", [3, 4, 5, 2, 3, 3, 4, 2, 2, 3], strict=True))
    terms = equation.partition("->")[0].replace(" ", "").split(",")
    operands = [
        array(*([2] if "..." in term else []), *[sizes[c] for c in term.replace("...", "")])
        for term in terms
    ]
    agree(lambda module, *a: module.einsum(equation, *a), *operands, gradient=True)


@st.composite
def contractions(draw: Any) -> tuple[str, list[Any]]:
    """Return an equation over a few letters and operands that fit it."""
    sizes = {letter: draw(st.integers(1, 3)) for letter in "abcd"}
    terms = draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    letters = sorted(set("".join(terms)))
    output = draw(st.lists(st.sampled_from(letters), unique=True)) if letters else []
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    operands = [generator.standard_normal([sizes[c] for c in term]) for term in terms]
    return ",".join(terms) + "->" + "".join(output), operands


@given(contractions())
@settings(max_examples=200, deadline=None)
def test_einsum_as_numpy(case: tuple[str, list[Any]]) -> None:
    equation, operands = case
    result = tp.einsum(equation, *[tp.tensor(a, dtype=tp.float64) for a in operands])
    expected = np.einsum(equation, *operands)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-9, atol=1e-9)


@given(st.lists(st.integers(1, 5), min_size=3, max_size=6))
@settings(max_examples=50, deadline=None)
def test_chains_in_any_order(sizes: list[int]) -> None:
    matrices = [array(n, m) for n, m in itertools.pairwise(sizes)]
    result = tp.linalg.multi_dot([tp.tensor(a, dtype=tp.float64) for a in matrices])
    np.testing.assert_allclose(result.numpy(), np.linalg.multi_dot(matrices), rtol=1e-9, atol=1e-9)


# --- integers, which go through floating-point numbers where these hold all results ---

INTEGER_SHAPES = [
    ((40, 30), (30, 20)),
    ((3, 40, 30), (30, 20)),
    ((3, 40, 30), (3, 30, 20)),
    ((120,), (120, 80)),
    ((120, 80), (80,)),
    ((2, 1, 20, 30), (3, 30, 20)),
    ((3, 4), (4, 2)),
]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_against_numpy(dtype: str) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    ranges = [(least, most), (0, min(most, 5)), (most - 3, most)]
    ranges += [(max(least, -(1 << 24)), min(most, 1 << 24)), (least, min(least + 3, most))]
    for low, high in ranges:
        for first, second in INTEGER_SHAPES:
            a: Any = rng.integers(low, high, first, dtype, endpoint=True)
            b: Any = rng.integers(low, high, second, dtype, endpoint=True)
            result = (tp.from_numpy(a) @ tp.from_numpy(b)).numpy()
            np.testing.assert_array_equal(result, np.matmul(a, b), f"{low} to {high}, {first}")
            assert result.dtype == a.dtype


def test_sums_that_just_fit_and_just_do_not() -> None:
    for bound in (1 << 26, (1 << 26) + 1):  # 2 * 2**52 is the last sum that float64 has for certain
        a = np.full((64, 2), bound, np.int64)
        b = np.full((2, 64), bound + 1, np.int64)
        np.testing.assert_array_equal((tp.from_numpy(a) @ tp.from_numpy(b)).numpy(), a @ b)


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PRODUCTS = (
    ((40, 70), (70, 50)),
    ((4096,), (4096,)),
    ((3, 20, 30), (30, 40)),
    ((2, 1, 30, 20), (4, 20, 30)),
    ((9000,), (9000, 3)),
    ((4, 5000), (5000,)),
    ((0, 5), (5, 3)),
)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
def test_products_of_integers_are_exact_modulo_the_dtype(dtype: str, shapes: Any) -> None:
    limits = np.iinfo(dtype)
    lowest, highest = int(limits.min), int(limits.max)
    rng = np.random.default_rng(0)
    for low, high in ((lowest, highest), (highest - 3, highest), (lowest, lowest + 3), (0, 9)):
        left, right = (rng.integers(low, high, s, dtype, endpoint=True) for s in shapes)
        found = tp.from_numpy(left) @ tp.from_numpy(right)
        # Python's own integers, wrapped around.
        exact = np.matmul(left.astype(object), right.astype(object)) if left.size else 0
        wrapped = np.broadcast_to(
            (exact + (-lowest)) % (highest - lowest + 1) + lowest, found.shape
        )
        assert str(found.dtype).endswith(dtype)
        assert found.tolist() == wrapped.tolist()
