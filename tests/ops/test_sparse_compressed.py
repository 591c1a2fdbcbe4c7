"""CSR, CSC, BSR and BSC, over layouts, dtypes, batches and blocks: against torch, and dense results."""

import copy
import io
import itertools
import pickle

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # torch's: in beta state

LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
BLOCKED = LAYOUTS[2:]
DTYPES = ("float32", "float64", "complex64", "int64", "bool", "float16")
BATCHES = ((), (2,), (2, 3))
DENSE = ((), (2,))
BLOCKS = ((2, 3), (1, 1), (4, 2))


def _cases():
    """Return each layout with its block sizes."""
    for name in LAYOUTS:
        for block in BLOCKS if name in BLOCKED else [None]:
            yield name, block


CASES = list(_cases())


def _array(dtype="float64", batch=(), dense=(), seed=0):
    """Return matrices of 4 x 6, each of a batch with the same elements zero, so that as many are stored."""
    random = np.random.RandomState(seed)
    values = random.randint(1, 9, (*batch, 4, 6, *dense))
    keep = random.rand(4, 6) < 0.4
    keep[0, 0] = True
    values = values * keep.reshape((*(1,) * len(batch), 4, 6, *(1,) * len(dense)))
    return values.astype(dtype if dtype != "complex64" else "float64").astype(dtype)


def _made(library, name, block, array, dense=()):
    layout = getattr(library, name)
    return library.tensor(array).to_sparse(layout=layout, blocksize=block, dense_dim=len(dense))


def _parts(x):
    by_rows = str(x.layout).endswith(("csr", "bsr"))
    names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    return [*[getattr(x, name)() for name in names], x.values()]


def _dense(x):
    return x.to_dense().detach().numpy() if hasattr(x, "to_dense") else np.asarray(x)


def _same_as_torch(ours, theirs):
    """Check that a tensor is of the layout, the places, the shape and the dtype that torch's is."""
    assert str(ours.layout).split(".")[-1] == str(theirs.layout).split(".")[-1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    if str(theirs.layout) == "torch.strided":
        pairs = [(ours, theirs)]
    elif str(theirs.layout) == "torch.sparse_coo":
        assert ours.sparse_dim() == theirs.sparse_dim()
        assert ours.is_coalesced() >= theirs.is_coalesced()  # torch does not look at blocks
        pairs = [(ours._indices(), theirs._indices()), (ours._values(), theirs._values())]
    else:
        assert ours.dense_dim() == theirs.dense_dim()
        assert ours._nnz() == theirs._nnz()
        pairs = list(zip(_parts(ours), _parts(theirs), strict=True))
    for own, other in pairs:
        assert str(own.dtype).split(".")[-1] == str(other.dtype).split(".")[-1]
        assert tuple(own.shape) == tuple(other.shape)
        np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_dense_to_sparse_and_back(name, block, dtype):
    for batch, dense in itertools.product(BATCHES, DENSE):
        array = _array(dtype, batch, dense)
        x = _made(tp, name, block, array, dense)
        assert (str(x.layout), x.dense_dim()) == (f"tensorplug.{name}", len(dense))
        np.testing.assert_array_equal(_dense(x), array)
        np.testing.assert_array_equal(_dense(x.to_sparse()), array)


@pytest.mark.parametrize(("name", "block"), CASES)
def test_parts_are_those_of_torch(name, block):
    torch = pytest.importorskip("torch", reason="torch says which elements are stored")
    for batch, dense in itertools.product(BATCHES, DENSE):
        array = _array(batch=batch, dense=dense)
        ours, theirs = [_made(library, name, block, array, dense) for library in (tp, torch)]
        _same_as_torch(ours, theirs)
        _same_as_torch(ours.to_sparse(), theirs.to_sparse())
        assert repr(ours).replace("tensorplug", "torch").split() == repr(theirs).split()


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("name", "block"), CASES)
def test_conversions_between_all_layouts(name, block, index):
    torch = pytest.importorskip("torch", reason="torch says which conversions there are")
    array = _array()
    made = [_made(library, name, block, array) for library in (tp, torch)]
    pair = []
    for library, x in zip((tp, torch), made, strict=True):
        starts, plain, values = _parts(x)
        dtype = getattr(library, index)
        pair.append(
            library.sparse_compressed_tensor(
                starts.to(dtype), plain.to(dtype), values, x.shape, layout=getattr(library, name)
            )
        )
    for wanted, size in [
        *CASES,
        ("sparse_coo", None),
        ("sparse_bsr", None),
        ("sparse_csr", (2, 2)),
        ("sparse_coo", (1,)),
    ]:
        results, errors = [], []
        for library, x in zip((tp, torch), pair, strict=True):
            try:
                results.append(x.to_sparse(layout=getattr(library, wanted), blocksize=size))
            except RuntimeError as error:
                errors.append(str(error))
        assert len(errors) in (0, 2), (wanted, size, errors)
        if errors:
            assert errors[0] == errors[1]
        else:
            _same_as_torch(*results)
            np.testing.assert_array_equal(_dense(results[0]), array)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("to_sparse_csr", ()),
        ("to_sparse_csc", ()),
        ("to_sparse_bsr", ((2, 3),)),
        ("to_sparse_bsc", ((2, 3),)),
        ("to_sparse_bsr", ((3, 3),)),
        ("to_sparse_bsc", (2,)),
        ("to_sparse_bsr", ((0, 3),)),
        ("to_sparse_bsc", ((1, 2, 3),)),
        ("to_sparse_csr", (1,)),
        ("to_sparse", (1,)),
        ("to_sparse", (2,)),
    ],
)
def test_methods_convert_and_refuse_as_torch(method, arguments):
    torch = pytest.importorskip("torch", reason="torch has the methods")
    array = _array()
    origins = [
        lambda t: t,
        lambda t: t.to_sparse(),
        *[
            lambda t, case=case: t.to_sparse(layout=_of(t, case[0]), blocksize=case[1])
            for case in CASES
        ],
        lambda t: t.unsqueeze(0).to_sparse(),
        lambda t: t.unsqueeze(0).to_sparse_csr(),
    ]
    for origin in origins:
        results, errors = [], []
        for library in (tp, torch):
            try:
                results.append(getattr(origin(library.tensor(array)), method)(*arguments))
            except RuntimeError as error:
                errors.append(str(error))
        assert len(errors) in (0, 2), errors
        if errors:
            assert errors[0] == errors[1]
        else:
            _same_as_torch(*results)


def _of(tensor, name):
    return getattr(tp if isinstance(tensor, tp.Tensor) else pytest.importorskip("torch"), name)


#: Functions of a sparse tensor that torch has of all four layouts.
OPS = {
    "neg": lambda m, x: -x,
    "sin": lambda m, x: x.sin(),
    "abs": lambda m, x: abs(x),
    "isnan": lambda m, x: x.isnan(),
    "relu": lambda m, x: m.relu(x),
    "times a number": lambda m, x: x * 3,
    "sum": lambda m, x: x.sum(),
    "add": lambda m, x: x + x,
    "sub": lambda m, x: m.add(x, x, alpha=-2),
    "transpose": lambda m, x: x.transpose(-2, -1),
    "twice": lambda m, x: x.transpose(-2, -1).transpose(-2, -1),
    "mH": lambda m, x: x.mH,
    "clone": lambda m, x: x.clone(),
    "detach": lambda m, x: x.detach(),
    "float": lambda m, x: x.to(m.float32),
    "bool": lambda m, x: x.bool(),
    "ones_like": lambda m, x: m.ones_like(x),
    "full_like": lambda m, x: m.full_like(x, 2.0),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "sparse_mask": lambda m, x: (x.to_dense() + 1).sparse_mask(x),
    "in place": lambda m, x: x.clone().mul_(2).neg_(),
    "zero_": lambda m, x: x.clone().zero_(),
    "copy_": lambda m, x: x.clone().copy_(x * 2),
    "to_dense": lambda m, x: x.to_dense(),
    "resize_as_sparse_": lambda m, x: m.zeros_like(x).resize_as_sparse_(x) * 0,
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_ops(op, name, block):
    torch = pytest.importorskip("torch", reason="torch has the op")
    for batch in [()] if op in ("add", "sub") else BATCHES:
        array = _array(batch=batch)
        results = [OPS[op](library, _made(library, name, block, array)) for library in (tp, torch)]
        if op == "resize_as_sparse_":  # of values that are not set
            shapes = [[tuple(part.shape) for part in _parts(x)] for x in results]
            assert shapes[0] == shapes[1]
        else:
            _same_as_torch(*results)


@pytest.mark.parametrize("dense", DENSE)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_select(name, block, dense):
    torch = pytest.importorskip("torch", reason="torch says what is selected")
    for batch in BATCHES:
        array = _array(batch=batch, dense=dense)
        for dim in range(array.ndim):
            pair = [_made(library, name, block, array, dense) for library in (tp, torch)]
            results, errors = [], []
            for library, x in zip((tp, torch), pair, strict=True):
                try:  # torch has no view of a block's row, and ours is none either
                    results.append(getattr(library, "select_copy", library.select)(x, dim, 1))
                except RuntimeError as error:
                    errors.append(str(error))
            assert len(errors) in (0, 2), errors
            if errors:
                assert errors[0] == errors[1].replace("select_copy", "select")
            else:
                np.testing.assert_array_equal(_dense(results[0]), array.take(1, dim))
                _same_as_torch(*results)
    x = _made(tp, name, block, _array())
    assert x[0, 0].item() == _array()[0, 0]


PRODUCTS = {
    "mm": lambda m, x, a, b, v: x.mm(a),
    "matmul": lambda m, x, a, b, v: x @ a,
    "dense @ sparse": lambda m, x, a, b, v: b @ x,
    "mv": lambda m, x, a, b, v: x.mv(v),
    "addmm": lambda m, x, a, b, v: m.addmm(m.ones(4, 2, dtype=a.dtype), x, a, beta=2, alpha=3),
    "addmv": lambda m, x, a, b, v: m.addmv(m.ones(4, dtype=v.dtype), x, v, beta=2, alpha=3),
    "sparse.mm": lambda m, x, a, b, v: m.sparse.mm(x, a),
    "linear": lambda m, x, a, b, v: m.nn.functional.linear(a.t(), x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("op", PRODUCTS)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_products(op, name, block, dtype):
    array = _array(dtype)
    random = np.random.RandomState(1)
    others = [random.rand(*sizes).astype(dtype) for sizes in ((6, 2), (2, 4), (6,))]
    dense = [tp.tensor(each) for each in others]
    got = PRODUCTS[op](tp, _made(tp, name, block, array), *dense)
    expected = (
        PRODUCTS[op](tp, tp.tensor(array), *dense)
        if op != "sparse.mm"
        else tp.mm(tp.tensor(array), dense[0])
    )
    np.testing.assert_allclose(_dense(got), _dense(expected), rtol=1e-4)


@pytest.mark.parametrize("op", ["mm", "dense @ sparse", "mv", "to_dense", "mul", "sin"])
@pytest.mark.parametrize(("name", "block"), CASES)
def test_gradients_are_those_of_the_dense_tensor_at_the_places(op, name, block):
    array = _array()
    ops = {
        **{key: lambda x, call=call: call(tp, x, a, b, v) for key, call in PRODUCTS.items()},
        "to_dense": lambda x: x.to_dense() ** 2,
        "mul": lambda x: (x * tp.tensor(array + 1)).to_dense(),
        "sin": lambda x: x.sin().to_dense(),
    }
    random = np.random.RandomState(1)
    a, b, v = [tp.tensor(random.rand(*sizes)) for sizes in ((6, 2), (2, 4), (6,))]
    x = _made(tp, name, block, array).requires_grad_()
    ops[op](x).sum().backward()
    whole = tp.tensor(array).requires_grad_()
    ops[op](whole).sum().backward()
    stored = tp.ones_like(x).to_dense()
    assert x.grad.layout is x.layout
    np.testing.assert_allclose(_dense(x.grad), (whole.grad * stored).numpy(), rtol=1e-12)


@pytest.mark.parametrize(("name", "block"), CASES)
def test_gradient_through_the_conversion_and_the_constructor(name, block):
    whole = tp.tensor(_array()).requires_grad_()
    x = whole.to_sparse(layout=getattr(tp, name), blocksize=block)
    (x.to_dense() ** 2).sum().backward()
    np.testing.assert_allclose(whole.grad.numpy(), 2 * _array())
    starts, plain, values = _parts(_made(tp, name, block, _array()))
    values.requires_grad_()
    made = tp.sparse_compressed_tensor(starts, plain, values, (4, 6), layout=getattr(tp, name))
    (made.to_dense() ** 2).sum().backward()
    np.testing.assert_allclose(values.grad.numpy(), 2 * values.detach().numpy())


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_files_pickles_and_copies(name, block, batch):
    x = _made(tp, name, block, _array(batch=batch))
    stream = io.BytesIO()
    tp.save(x, stream)
    stream.seek(0)
    copies = [tp.load(stream), pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)]
    for each in copies:
        tp.testing.assert_close(each, x, rtol=0, atol=0)
        assert each.layout is x.layout


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_files_are_exchanged_with_torch(name, block, batch):
    torch = pytest.importorskip("torch", reason="its files are read and written")
    pair = [_made(library, name, block, _array(batch=batch)) for library in (tp, torch)]
    for writer, reader, x in ((tp, torch, pair[0]), (torch, tp, pair[1])):
        stream = io.BytesIO()
        writer.save(x, stream)
        stream.seek(0)
        read = reader.load(stream, weights_only=True)
        _same_as_torch(*((read, x) if reader is tp else (x, read)))


@pytest.mark.parametrize(("name", "block"), CASES)
def test_assert_close_compares_part_by_part(name, block):
    x = _made(tp, name, block, _array())
    tp.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError, match=f"Sparse {name[-3:].upper()} values"):
        tp.testing.assert_close(x * 2, x)
    with pytest.raises(AssertionError, match="number of specified values"):
        tp.testing.assert_close(tp.zeros_like(x), x)


BROKEN = {
    "first": ([1, 1, 2], [0, 1], (2, 2), r"indices\[..., 0\] == 0` is not satisfied"),
    "last": ([0, 1, 3], [0, 1], (2, 2), r"indices\[..., -1\] == nnz` is not satisfied"),
    "bounds": (
        [0, 1, 2],
        [0, 2],
        (2, 2),
        r"0 <= (col|row)_indices < n(col|row)s` is not satisfied",
    ),
    "decreasing": ([0, 3, 2], [0, 1], (2, 2), r"0 <= c(row|col)_indices\[..., 1:\]"),
    "order": ([0, 2, 2], [1, 0], (2, 2), "are sorted and distinct along the last dimension"),
    "count": (
        [0, 1],
        [0],
        (2, 2),
        r"must be equal to the number of (row|column)( block)?s \+ 1 \(=3\)",
    ),
    "nnz": ([0, 1, 1], [0, 1, 1], (2, 2), r"shape\[-1\] must be equal to nnz"),
    "dims": (
        [0, 1, 2],
        [0, 1],
        (2, 2, 2),
        "tensor dimensionality must be sum of batch, base, and dense",
    ),
    "mismatch": ([[0, 1, 2]], [0, 1], (2, 2), "dimensionalities must be equal but got 2 and 1"),
    "none": (0, [0, 1], (2, 2), "must have dimensionality >= 1 but got 0"),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("name", LAYOUTS)
def test_parts_that_do_not_fit_are_refused_in_torchs_words(name, broken):
    starts, plain, size, text = BROKEN[broken]
    values = tp.ones(2, 1, 1) if name in BLOCKED else tp.ones(2)
    with pytest.raises(RuntimeError, match=text):
        tp.sparse_compressed_tensor(
            starts, plain, values, size, layout=getattr(tp, name), check_invariants=True
        )
    torch = pytest.importorskip("torch", reason="torch has the check")
    with pytest.raises(RuntimeError, match=text):
        torch.sparse_compressed_tensor(
            torch.tensor(starts), torch.tensor(plain), torch.tensor(values.numpy()), size,
            layout=getattr(torch, name), check_invariants=True,
        )  # fmt: skip


REFUSED = {
    "other indices": (
        lambda x: x.crow_indices() if str(x.layout)[-1] == "c" else x.ccol_indices(),
        "expected sparse (row|column) compressed tensor layout but got Sparse[BC]s[rc]",
    ),
    "indices": (lambda x: x.indices(), "sparse coordinate tensor layout"),
    "stride": (lambda x: x.stride(), "do not have strides"),
    "is_contiguous": (lambda x: x.is_contiguous(), "do not have is_contiguous"),
    "numpy": (lambda x: x.numpy(), "can't convert Sparse[BC]s[rc] layout tensor to numpy"),
    "clone": (
        lambda x: x.clone(memory_format=tp.contiguous_format),
        "unsupported memory format option",
    ),
    "empty_like": (
        lambda x: tp.empty_like(x, layout=tp.sparse_coo),
        "empty_like with different sparse layout is not supported",
    ),
    "copy_ of a dense one": (
        lambda x: x.clone().copy_(x.to_dense()),
        "copy of sparse compressed tensors having different layouts is not supported",
    ),
    "copy_ of a number": (
        lambda x: x.clone().copy_(1),
        "self layout is Sparse[BC]s[rc] and src layout is Strided",
    ),
    "copy_ of fewer": (lambda x: x.clone().copy_(tp.zeros_like(x)), "same number of specified"),
    "copy_ of another shape": (
        lambda x: (
            x.clone().copy_(tp.cat([x.to_dense(), tp.zeros(4, 6)]).to_sparse(layout=x.layout))
            if "bs" not in str(x.layout)
            else x.clone().copy_(_other_rows(x))
        ),
        "expected shapes of self and src to match along dimension",
    ),
    "resize_as_sparse_": (
        lambda x: x.resize_as_sparse_(x.to_dense()),
        "src  expected sparse compressed tensor layout but got Strided",
    ),
    "number": (lambda x: x + 1, "of a sparse tensor and a number"),
}


def _other_rows(x):
    """Return a tensor with the parts of another, and rows or columns of blocks more."""
    block = x.values().shape[1:]
    pad = [0, 0, 0, 2 * block[0]] if "bsr" in str(x.layout) else [0, 2 * block[1]]
    dense = tp.nn.functional.pad(x.to_dense(), pad)
    return dense.to_sparse(layout=x.layout, blocksize=tuple(block))


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize(("name", "block"), CASES)
def test_refusals(refused, name, block):
    call, text = REFUSED[refused]
    x = _made(tp, name, block, _array())
    with pytest.raises((RuntimeError, TypeError), match=text):
        call(x)
    np.testing.assert_array_equal(_dense(x), _array())


@pytest.mark.parametrize("name", LAYOUTS[:2])
def test_factories_store_nothing(name):
    layout = getattr(tp, name)
    for make in (tp.zeros, tp.empty):
        x = make((2, 3, 4), layout=layout)
        assert x.layout is layout
        assert x._nnz() == 0
        assert not x.to_dense().any()
    for wrong in ((3,), ()):
        with pytest.raises(RuntimeError, match="Only batched sparse compressed"):
            tp.zeros(wrong, layout=layout)


@pytest.mark.parametrize("name", BLOCKED)
def test_factories_know_no_size_of_blocks(name):
    for make in (tp.zeros, tp.empty):
        with pytest.raises(
            RuntimeError, match=r"expected sparse compressed \(non-block\) tensor layout"
        ):
            make((2, 4), layout=getattr(tp, name))


def test_batches_store_as_many_elements_each():
    uneven = tp.stack([tp.ones(2, 2), tp.eye(2)])
    for name, block in (("sparse_csr", None), ("sparse_csc", None), ("sparse_bsr", (1, 1))):
        with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
            uneven.to_sparse(layout=getattr(tp, name), blocksize=block)
    with pytest.raises(RuntimeError, match="product of batch dimensions to be non-zero"):
        tp.ones(0, 2, 2).to_sparse_csr()


def test_sampled_addmm_of_a_batch():
    array = _array(batch=(2,))
    a, b = tp.rand(2, 4, 3, dtype=tp.float64), tp.rand(2, 3, 6, dtype=tp.float64)
    got = tp.sparse.sampled_addmm(tp.tensor(array).to_sparse_csr(), a, b, beta=2, alpha=3)
    expected = (2 * array + 3 * (a @ b).numpy()) * (array != 0)
    np.testing.assert_allclose(_dense(got), expected)


@pytest.mark.parametrize("name", LAYOUTS[:2])
def test_products_of_two_sparse_matrices_are_csr(name):
    array = _array()
    x = _made(tp, name, None, array)
    for other in ("sparse_csr", "sparse_csc"):
        product = x @ _made(tp, other, None, array.T)
        assert product.layout is tp.sparse_csr
        np.testing.assert_array_equal(_dense(product), array @ array.T)


@pytest.mark.parametrize("beta", [0, 2])
@pytest.mark.parametrize("name", LAYOUTS[:2])
def test_addmm_of_sparse_matrices_is_of_the_layout_of_the_first(name, beta):
    array = _array()
    square = array @ array.T
    x = _made(tp, name, None, array)
    got = tp.addmm(_made(tp, name, None, square), x, x.t().to_sparse(layout=x.layout), beta=beta)
    assert got.layout is x.layout
    np.testing.assert_array_equal(_dense(got), beta * square + square)


@pytest.mark.parametrize("wanted", [*LAYOUTS, "sparse_coo", "strided"])
@pytest.mark.parametrize(("name", "block"), CASES)
def test_zeros_like_in_another_layout(name, block, wanted):
    torch = pytest.importorskip("torch", reason="torch says what is kept")
    for batch, dense in itertools.product(BATCHES, DENSE):
        array = _array(batch=batch, dense=dense)
        pair = [_made(library, name, block, array, dense) for library in (tp, torch)]
        try:
            expected = torch.zeros_like(pair[1], layout=getattr(torch, wanted))
        except RuntimeError:  # ours may know more
            continue
        _same_as_torch(tp.zeros_like(pair[0], layout=getattr(tp, wanted)), expected)


@pytest.mark.parametrize(
    ("shape", "offsets", "size", "options"),
    [
        ((1, 3), [0], (3, 2, 3), {}),
        ((2, 3), [[1, 2], [0, 3]], (3, 3), {}),
        ((3, 2, 3), [0, 1, 2], (4, 4), {}),
        ((3, 3), [-1, 0], (3, 3), {}),
        ((2, 2), [-1, 0], (2, 3), {"layout": "sparse_bsr"}),
        ((2, 5), [0, 0], (5, 5), {}),
        ((1, 5), [0.0], (5, 5), {}),
        ((2, 4), [0, 1], (3, 4), {"layout": "sparse_csc"}),
        ((2, 4), [0, -1], (3, 4), {"layout": "sparse_csr"}),
    ],
)
def test_spdiags(shape, offsets, size, options):
    torch = pytest.importorskip("torch", reason="torch has the function")
    results, errors = [], []
    for library in (tp, torch):
        named = {key: getattr(library, name) for key, name in options.items()}
        try:
            made = library.sparse.spdiags(
                library.ones(shape), library.tensor(offsets), size, **named
            )
            results.append(made)
        except RuntimeError as error:
            errors.append(str(error))
    assert len(errors) in (0, 2)
    if errors:
        assert errors[1].split("(")[0].split(",")[0].strip()[:30] in errors[0]
    else:
        _same_as_torch(*results)
