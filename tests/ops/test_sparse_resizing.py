"""Sparse tensors that take another shape in place: elements keep their places."""

import itertools

import pytest

import tensorplug as tp

SIZES = [(2, 3), (2, 5), (4, 3), (3, 4), (1, 3), (0, 3)]


def example(sparse_dim=2):
    return tp.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse(sparse_dim)


def within(dense, size):
    """A dense tensor of a size that holds what there is of another one."""
    made = tp.zeros(size)
    kept = tuple([slice(min(a, b)) for a, b in zip(dense.shape, size, strict=True)])
    made[kept] = dense[kept]
    return made


@pytest.mark.parametrize(("size", "sparse_dim"), list(itertools.product(SIZES, (1, 2))))
def test_sparse_resize(size, sparse_dim):
    x = example(sparse_dim)
    before = x.to_dense()
    if size[0] < 2:
        with pytest.raises(RuntimeError, match=r"shrinking .* \[2.*sparse_resize_and_clear_"):
            x.sparse_resize_(size, sparse_dim, 2 - sparse_dim)
        assert x.to_dense().equal(before)
        return
    assert x.sparse_resize_(size, sparse_dim, 2 - sparse_dim) is x
    assert x.to_dense().equal(within(before, size))
    y = example(sparse_dim)
    assert y.resize_as_(x).to_dense().equal(x.to_dense())


@pytest.mark.parametrize(("size", "sparse_dim"), [((4, 5), 2), ((1, 2, 3), 1), ((3,), 1), ((), 0)])
def test_what_stores_nothing_takes_any_shape(size, sparse_dim):
    for x in (example(), example() * 0):
        x.sparse_resize_and_clear_(size, sparse_dim, len(size) - sparse_dim)
        assert (x._nnz(), x.shape, x.sparse_dim()) == (0, size, sparse_dim)
        x.sparse_resize_((2, 3), 1, 1)
        assert x.to_dense().equal(tp.zeros(2, 3))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (((2, 3, 4), 3, 0), "number of sparse dimensions"),
        (((2, 3, 4), 2, 1), "number of dense dimensions"),
        (((2, 3, 4), 2, 0), "len"),
    ],
)
def test_what_is_stored_keeps_its_kinds_of_dimensions(arguments, match):
    x = example()
    with pytest.raises(RuntimeError, match=match):
        x.sparse_resize_(*arguments)
    assert x.to_dense().equal(example().to_dense())


@pytest.mark.parametrize("size", SIZES)
def test_rows_and_columns(size):
    """Rows that are cut off leave their elements to the last one, as in torch."""
    x = example().to_sparse_csr()
    assert x.resize_(*size) is x
    assert x.shape == size
    assert x.crow_indices()[-1] == x.crow_indices()[: size[0] + 1].max() == min(3, size[0] * 3)
    if size[0] >= 2:
        assert x.to_dense().equal(within(example().to_dense(), size))
        assert example().to_sparse_csr().resize_as_(x).to_dense().equal(x.to_dense())


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda x: x.to_sparse_csr().resize_(2, 2), RuntimeError),
        (lambda x: x.to_sparse_csr().resize_(6), RuntimeError),
        (lambda x: x.to_sparse_csr().resize_(1, 2, 3), NotImplementedError),
        (lambda x: x.resize_(4, 3), NotImplementedError),
        (lambda x: x.resize_as_(tp.ones(4, 3)), NotImplementedError),
        (lambda x: tp.ones(2, 3).sparse_resize_((2, 3), 2, 0), NotImplementedError),
        (lambda x: x.requires_grad_().sparse_resize_((2, 4), 2, 0), RuntimeError),
        (lambda x: x.to_sparse_csr().requires_grad_().resize_(4, 3), RuntimeError),
    ],
)
def test_refusals(change, kind):
    with pytest.raises(kind, match="resize"):
        change(example())


@pytest.mark.parametrize("turn", ["t_", "transpose_"])
def test_transposed_in_place(turn):
    x = example()
    assert getattr(x, turn)(*((0, 1) if turn == "transpose_" else ())) is x
    assert x.to_dense().equal(example().to_dense().t())
    with pytest.raises(RuntimeError, match="in-place transposition"):
        getattr(x.to_sparse_csr(), turn)(*((0, 1) if turn == "transpose_" else ()))


def test_rows_that_are_cut_off_leave_what_there_is_room_for():
    x = tp.ones(2, 3).to_sparse_csr().resize_(1, 5)
    assert x.crow_indices().tolist() == [0, 5]
    assert x.col_indices().tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        ((), (0,)),
        ((2, 3), (2, 3)),
        ((tp.tensor([[0], [1]]), tp.tensor([1.0])), (1, 2)),
        ((tp.tensor([[0], [1]]), tp.tensor([1.0]), (4, 5)), (4, 5)),
    ],
)
def test_new(arguments, shape):
    made = example().double().new(*arguments)
    assert made.shape == shape
    assert made.dtype is tp.float64
    assert made._nnz() == len(arguments[1:2]) * (made.shape != (2, 3))


@pytest.mark.parametrize(
    "argument", [[6], [2, 3], tp.ones(3), tp.ones(3).untyped_storage()], ids=str
)
def test_new_refuses_elements(argument):
    with pytest.raises(TypeError):
        example().new(argument)


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr], ids=str)
@pytest.mark.parametrize("format", [tp.contiguous_format, tp.channels_last], ids=str)
def test_memory_formats_are_of_strided_tensors(layout, format):
    x = example().to_dense().to_sparse(layout=layout)
    with pytest.raises(RuntimeError, match="unsupported memory format option"):
        x.to(tp.float64, memory_format=format)
    assert x.to(tp.float64, memory_format=tp.preserve_format).layout is layout
