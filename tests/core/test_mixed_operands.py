"""Functions of two tensors of different dtypes: the result's dtype and values, and refusals, as torch's."""

import itertools

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

DTYPES = ("int64", "float16", "bfloat16", "float32", "float64", "complex64")

# Of the module, and of two functions that make tensors of the one and of the other dtype.
CALLS = {
    "dist": lambda t, a, b: t.dist(a(4), b(4)),
    "pairwise_distance": lambda t, a, b: t.nn.functional.pairwise_distance(a(2, 3), b(2, 3)),
    "triplet_margin_loss": lambda t, a, b: t.nn.functional.triplet_margin_loss(a(2, 3), b(2, 3), a(2, 3)),
    "poisson_nll_loss": lambda t, a, b: t.nn.functional.poisson_nll_loss(a(4), b(4)),
    "gaussian_nll_loss": lambda t, a, b: t.nn.functional.gaussian_nll_loss(a(4), b(4), a(4)),
    "multilabel_soft_margin_loss": lambda t, a, b: t.nn.functional.multilabel_soft_margin_loss(
        a(2, 3), b(2, 3)
    ),
    "l1_loss": lambda t, a, b: t.nn.functional.l1_loss(a(4), b(4)),
    "solve_triangular": lambda t, a, b: t.linalg.solve_triangular(a(3, 3), b(3, 2), upper=True),
    "solve_triangular(left=False)": lambda t, a, b: t.linalg.solve_triangular(
        a(3, 3), b(2, 3), upper=False, left=False
    ),
    "cov(aweights)": lambda t, a, b: t.cov(a(3, 4), aweights=b(4)),
    "index_fill": lambda t, a, b: a(4).index_fill(0, t.tensor([1]), b(4)[0]),
    "index_fill_": lambda t, a, b: a(4).index_fill_(0, t.tensor([1]), b(4)[0]),
    "masked_fill": lambda t, a, b: a(4).masked_fill(t.tensor([True, False, True, True]), b(4)[0]),
    "normal": lambda t, a, b: t.normal(a(4), b(4)) * 0,
    "binary_cross_entropy(weight)": lambda t, a, b: t.nn.functional.binary_cross_entropy(
        a(4) * 0.5, a(4) * 0.5, b(4)
    ),
    "binary_cross_entropy_with_logits(weight)": (
        lambda t, a, b: t.nn.functional.binary_cross_entropy_with_logits(a(4), a(4), b(4))
    ),
}  # fmt: skip

# Beside an integer torch's formula goes by way of float32: of these the dtype is half here.
OTHERS = {
    ("poisson_nll_loss", "int64", "float16"),
    ("poisson_nll_loss", "int64", "bfloat16"),
    ("triplet_margin_loss", "int64", "float16"),
    ("triplet_margin_loss", "int64", "bfloat16"),
}


def outcome(library, call, *dtypes):
    """Return the dtype and the values of a call, or the type of its exception."""
    generator = np.random.default_rng(0)

    def maker(dtype):
        def make(*shape):
            values = library.tensor(generator.integers(1, 4, shape).astype(np.float32))
            return values.to(getattr(library, dtype))

        return make

    try:
        found = call(library, *map(maker, dtypes))
    except Exception as error:
        return type(error)
    return str(found.dtype).split(".")[-1], found.to(library.complex64).numpy()


@pytest.mark.parametrize("name", CALLS)
def test_the_dtype_of_a_result_is_that_of_torch(name):
    for one, other in itertools.permutations(DTYPES, 2):
        if (name, one, other) in OTHERS:
            continue
        ours = outcome(tp, CALLS[name], one, other)
        theirs = outcome(torch, CALLS[name], one, other)
        if isinstance(theirs, type):
            assert isinstance(ours, type), (one, other, ours)
        elif not isinstance(
            ours, type
        ):  # what is refused here, and why, is a matter of the families
            assert ours[0] == theirs[0], (one, other)
            np.testing.assert_allclose(
                ours[1], theirs[1], rtol=3e-2, atol=3e-2, err_msg=f"{one}, {other}"
            )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("mask", ["bool", "int64", "float16", "bfloat16", "float32", "float64"])
def test_masks_of_attention(dtype, mask):
    def attended(library):
        generator = np.random.default_rng(1)
        values = [
            library.tensor(generator.standard_normal((2, 5, 8)))
            .to(getattr(library, dtype))
            .requires_grad_()
            for _ in range(3)
        ]
        given = library.tensor(generator.integers(0, 2, (5, 5))).to(getattr(library, mask))
        given[:, 0] = 1  # each row sees something
        try:
            result = library.nn.functional.scaled_dot_product_attention(*values, given)
        except RuntimeError:
            return RuntimeError
        result.square().sum().backward()
        return [
            str(result.dtype)[-8:],
            *[x.double().detach().numpy() for x in (result, values[0].grad)],
        ]

    ours, theirs = attended(tp), attended(torch)
    if theirs is RuntimeError:
        assert ours is RuntimeError
    else:
        assert ours[0] == theirs[0]
        tolerance = {"float16": 5e-3, "bfloat16": 4e-2}.get(dtype, 1e-5)
        for one, other in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_the_right_hand_side_is_converted_to_the_dtype_of_the_triangle(left, dtype):
    A = tp.tensor([[2.0, 1.0], [0.0, 4.0]], dtype=tp.float64, requires_grad=True)
    B = tp.tensor([[2, 4], [8, 12]], dtype=getattr(tp, dtype))
    if dtype != "int64":
        B.requires_grad_()
    X = tp.linalg.solve_triangular(A, B, upper=True, left=left)
    wanted = np.linalg.solve(A.detach().numpy(), B.detach().double().numpy())
    if not left:
        wanted = np.linalg.solve(A.detach().numpy().T, B.detach().double().numpy().T).T
    np.testing.assert_allclose(X.detach().numpy(), wanted)
    X.sum().backward()
    assert A.grad.dtype is tp.float64
    assert dtype == "int64" or B.grad.dtype is B.dtype
