"""Functions that say shortly what ops say, against torch where it is installed."""

import pytest

import tensorplug as tp
from tensorplug.testing import assert_close


@pytest.mark.parametrize(
    "shapes", [((2, 1), (3,)), ((),), (), ((0, 1), (1, 4)), (3, (2, 1)), ((1,), (0,))]
)
def test_broadcast_shapes(shapes):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    found = tp.broadcast_shapes(*shapes)
    assert isinstance(found, tp.Size)
    assert tuple(found) == tuple(torch.broadcast_shapes(*shapes))


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((-1,),)])
def test_shapes_that_do_not_broadcast(shapes):
    with pytest.raises(RuntimeError, match="broadcast"):
        tp.broadcast_shapes(*shapes)


@pytest.mark.parametrize(
    ("shape", "wrap"),
    [
        ((3, 3), False), ((2, 4), False), ((7, 2), False), ((7, 2), True), ((2, 7), True),
        ((6, 1), True), ((3, 3, 3), False), ((0, 3), True), ((3, 0), True), ((0, 0, 0), False),
    ],
)  # fmt: skip
def test_fill_diagonal(shape, wrap):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    expected = torch.zeros(shape).fill_diagonal_(2.0, wrap)
    assert tp.zeros(shape).fill_diagonal_(2.0, wrap).tolist() == expected.tolist()


def test_fill_diagonal_cuts_the_gradient():
    w = tp.ones(2, 2, requires_grad=True)
    (w * 3).fill_diagonal_(0).sum().backward()
    assert w.grad.tolist() == [[0.0, 3.0], [3.0, 0.0]]


@pytest.mark.parametrize("shape", [(3,), (2, 3, 2)])
def test_fill_diagonal_refuses(shape):
    with pytest.raises(RuntimeError, match="dimensions"):
        tp.zeros(shape).fill_diagonal_(1.0)


@pytest.mark.parametrize("N", [None, 0, 1, 4])
@pytest.mark.parametrize("increasing", [False, True])
def test_vander(N, increasing):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    expected = torch.vander(torch.tensor([1, 2, 3]), N, increasing)
    found = tp.vander(tp.tensor([1, 2, 3]), N, increasing)
    assert found.tolist() == expected.tolist()
    assert found.dtype is tp.int64


def test_vander_refuses():
    with pytest.raises(RuntimeError, match="one-dimensional"):
        tp.vander(tp.zeros(2, 2))
    with pytest.raises(RuntimeError, match="non-negative"):
        tp.vander(tp.zeros(2), -1)


def test_empty_permuted():
    made = tp.empty_permuted((2, 3, 5), (1, 0, 2), dtype=tp.float64, requires_grad=True)
    assert made.shape == (2, 3, 5)
    assert made.stride() == (5, 10, 1)
    assert made.is_leaf
    assert made.dim_order() == made.dim_order(ambiguity_check=True) == (1, 0, 2)
    with pytest.raises(RuntimeError, match="Duplicate dim"):
        tp.empty_permuted((2, 3), (0, 0))


def test_what_is_left_to_do():
    x = tp.tensor([1 + 2j]).conj()
    assert tp.is_conj(x)
    assert not tp.is_neg(x)
    assert not tp.is_conj(tp.resolve_conj(x))
    assert tp.resolve_conj(x).tolist() == [1 - 2j]
    assert tp.resolve_neg(x) is x


def test_resize_out_of_place_warns():
    with pytest.warns(UserWarning, match="deprecated"):
        assert tp.arange(6).resize(2, 3).shape == (2, 3)


def test_copies_and_parts():
    x = tp.arange(6.0)
    copy = x.narrow_copy(0, 1, 2)
    copy.zero_()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert [part.tolist() for part in x.unsafe_chunk(3)] == [[0, 1], [2, 3], [4, 5]]
    assert [part.tolist() for part in tp.unsafe_split(x, [2, 4])] == [[0, 1], [2, 3, 4, 5]]
    assert tp.from_dlpack(x).tolist() == x.tolist()
    assert tp.detach(x.requires_grad_()).requires_grad is False
    y = tp.tensor([1.5])
    expected = tp.polygamma(1, y)
    assert_close(y.polygamma_(1), expected)


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("part", [(), (0,), (slice(None), 1)])
def test_polygamma_in_place_has_the_gradient_of_the_op(n, part):
    start = tp.tensor([[0.3, 1.5], [2.5, 0.7]], dtype=tp.float64, requires_grad=True)
    written = start.clone()
    written[part].polygamma_(n)
    (gradient,) = tp.autograd.grad(written.sum(), start)
    expected = tp.ones_like(gradient)
    expected[part] = tp.polygamma(n + 1, start.detach()[part])
    assert_close(gradient, expected)


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (2, 6, 4)])
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128])
def test_factors_of_low_rank(shape, dtype):
    tp.manual_seed(0)
    A = tp.randn(*shape[:-1], 2, dtype=dtype) @ tp.randn(*shape[:-2], 2, shape[-1], dtype=dtype)
    U, S, V = tp.svd_lowrank(A, q=3)
    assert_close(U @ tp.diag_embed(S).to(dtype) @ V.mH, A)
    assert_close(S[..., :2], tp.linalg.svdvals(A)[..., :2])
    mean = A.mean(-2, True)
    U, S, V = tp.pca_lowrank(A, q=3)
    assert_close(U @ tp.diag_embed(S).to(dtype) @ V.mH, A - mean)
    U, S, V = tp.svd_lowrank(A, q=3, M=mean)
    assert_close(U @ tp.diag_embed(S).to(dtype) @ V.mH, A - mean)


def test_factors_of_low_rank_refuse():
    with pytest.raises(ValueError, match="q"):
        tp.pca_lowrank(tp.ones(3, 2), q=3)
    with pytest.raises(ValueError, match="q"):
        tp.svd_lowrank(tp.ones(3, 2), q=-1)
    with pytest.raises(ValueError, match="niter"):
        tp.pca_lowrank(tp.ones(3, 2), niter=-1)


def test_settings_that_are_remembered():
    assert tp.get_deterministic_debug_mode() == 0
    try:
        tp.set_deterministic_debug_mode("warn")
        assert tp.get_deterministic_debug_mode() == 1
        assert tp.is_deterministic_algorithms_warn_only_enabled()
        tp.set_deterministic_debug_mode(2)
        assert tp.are_deterministic_algorithms_enabled()
    finally:
        tp.set_deterministic_debug_mode("default")
    with pytest.raises(RuntimeError, match="expected one of"):
        tp.set_deterministic_debug_mode("x")
    with pytest.raises(RuntimeError, match="positive"):
        tp.set_num_interop_threads(0)
    assert tp.get_num_interop_threads() == 1
    assert tp.is_warn_always_enabled() is False
    assert tp.set_flush_denormal(True) is False


def test_orders_of_dimensions_that_are_not_the_only_ones():
    formats = [tp.channels_last, tp.contiguous_format]
    x = tp.empty(1, 2, 3, 4)
    assert x.dim_order() == x.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    turned = x.to(memory_format=tp.channels_last)
    assert turned.dim_order(ambiguity_check=formats) == (0, 2, 3, 1)
    for ambiguous, check in ((x, True), (turned, formats[1:]), (tp.empty(2, 0, 3), True)):
        with pytest.raises(RuntimeError, match="unique dim order"):
            ambiguous.dim_order(ambiguity_check=check)
    with pytest.raises(TypeError, match="bool or a list of memory formats"):
        x.dim_order(ambiguity_check=1)
