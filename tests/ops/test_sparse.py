"""Ops on sparse tensors: against dense NumPy, torch where it is installed, and by finite differences."""

import contextlib
import copy
import itertools
import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.interception import Intercepted
from tensorplug.sparse.calls import TABLE

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # torch says so once per process

FUZZ = int(os.environ.get("TENSORPLUG_FUZZ", "0"))
DTYPES = ("float32", "float64", "complex64", "int64", "int32")
KINDS = ("coalesced", "unordered", "duplicates", "empty", "one")
# Sparse and dense sizes.
SHAPES = {
    "matrix": ((3, 4), ()),
    "row": ((1, 5), ()),
    "vector": ((6,), ()),
    "three": ((2, 3, 2), ()),
    "hybrid": ((4,), (3,)),
    "hybrid of matrices": ((2, 3), (2, 2)),
    "no rows": ((0, 3), ()),
}


class Case:
    """The parts of a sparse tensor, and the dense array that it stands for."""

    def __init__(self, seed, kind, shape, dtype):
        rng = np.random.default_rng(seed)
        sparse, dense = SHAPES[shape]
        size = int(np.prod(sparse))
        wanted = {"empty": 0, "one": 1}.get(kind, 5)
        if kind == "duplicates":
            flat = rng.integers(0, size, wanted + 2) if size else np.zeros(0, np.int64)
        else:
            flat = rng.permutation(size)[: min(wanted, size)]
        if kind == "coalesced":
            flat = np.sort(flat)
        self.shape = (*sparse, *dense)
        self.indices = np.stack(np.unravel_index(flat, sparse)) if size else np.zeros((2, 0), int)
        self.values = numbers(rng, (len(flat), *dense), dtype)
        self.dense = np.zeros(self.shape, self.values.dtype)
        np.add.at(self.dense, tuple(self.indices), self.values)
        self.coalesced = kind == "coalesced"
        self.matrix = len(self.shape) == 2 and not dense
        self.other = numbers(rng, self.shape, dtype)
        self.right = numbers(rng, (self.shape[-1], 3), dtype)
        self.left = numbers(rng, (2, self.shape[0]), dtype)
        self.vector = numbers(rng, self.shape[-1:], dtype)

    def of(self, lib, layout="coo", requires_grad=False):
        made = lib.sparse_coo_tensor(
            lib.tensor(self.indices),
            lib.tensor(self.values),
            self.shape,
            is_coalesced=self.coalesced,
        )
        made = made if layout == "coo" else made.to_sparse_csr()
        return made.requires_grad_() if requires_grad else made


def numbers(rng, shape, dtype):
    values = rng.integers(-4, 5, shape) if "int" in dtype else rng.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return np.asarray(values, dtype)


def plain(tensor):
    """The elements of a tensor of any layout."""
    return tensor.detach().to_dense().resolve_conj().numpy()


# Ops: on a case and its sparse tensor, and on the dense array. None: only where torch is.
GENERAL = {
    "to_dense": (lambda x, c, t: x.to_dense(), lambda d, c: d),
    "coalesce": (lambda x, c, t: x.coalesce(), lambda d, c: d),
    "neg": (lambda x, c, t: -x, lambda d, c: -d),
    "times 2": (lambda x, c, t: x * 2, lambda d, c: d * 2),
    "2 times": (lambda x, c, t: 2 * x, lambda d, c: d * 2),
    "times dense": (lambda x, c, t: x * t(c.other), lambda d, c: d * c.other),
    "dense times": (lambda x, c, t: t(c.other) * x, lambda d, c: d * c.other),
    "squared": (lambda x, c, t: x * x, lambda d, c: d * d),
    "plus itself": (lambda x, c, t: x + x, lambda d, c: d + d),
    "minus half": (lambda x, c, t: x - x * 3, lambda d, c: d - d * 3),
    "dense plus": (lambda x, c, t: t(c.other) + x, lambda d, c: c.other + d),
    "dense minus": (lambda x, c, t: t(c.other) - x, lambda d, c: c.other - d),
    "dense += ": (lambda x, c, t: t(c.other).add_(x, alpha=2), lambda d, c: c.other + 2 * d),
    "sum": (lambda x, c, t: x.sum(), lambda d, c: d.sum()),
    "clone": (lambda x, c, t: x.clone(), lambda d, c: d),
    "detach": (lambda x, c, t: x.detach(), lambda d, c: d),
    "abs": (lambda x, c, t: x.abs(), lambda d, c: np.abs(d)),
    "pow": (lambda x, c, t: x**2, lambda d, c: d**2),
    "zeros_like": (lambda x, c, t: x * 0, lambda d, c: d * 0),
    "mask": (
        lambda x, c, t: t(c.other).sparse_mask(x.coalesce() if x.is_sparse else x),
        lambda d, c: c.other * named(d, c),
    ),
    "mul_": (lambda x, c, t: x.clone().mul_(3), lambda d, c: d * 3),
    "neg_": (lambda x, c, t: x.clone().neg_(), lambda d, c: -d),
    "zero_": (lambda x, c, t: x.clone().zero_(), lambda d, c: d * 0),
    "add_": (lambda x, c, t: x.clone().add_(x), lambda d, c: d + d),
}
DIMENSIONS = {
    "sum(0)": (lambda x, c, t: x.sum(0), lambda d, c: d.sum(0)),
    "sum(-1)": (lambda x, c, t: x.sum(-1), lambda d, c: d.sum(-1)),
    "sum all": (
        lambda x, c, t: x.sum(tuple(range(len(c.shape)))),
        lambda d, c: d.sum(),
    ),
    "sum keepdim": (lambda x, c, t: x.sum(0, keepdim=True), lambda d, c: d.sum(0, keepdims=True)),
    "unsqueeze": (lambda x, c, t: x.unsqueeze(0), lambda d, c: d[None]),
    "cat": (lambda x, c, t: cat(t)([x, x]), lambda d, c: np.concatenate([d, d])),
    "stack": (lambda x, c, t: lib_of(t).stack([x, x, x]), lambda d, c: np.stack([d, d, d])),
    "index_select last": (
        lambda x, c, t: x.index_select(-1, t(np.array([0, 0]))),
        lambda d, c: d[..., [0, 0]],
    ),
    "index_select from the end": (
        lambda x, c, t: x.index_select(0, t(np.array([-1, 0, -1]))),
        lambda d, c: d[[-1, 0, -1]],
    ),
    "narrow": (
        lambda x, c, t: x.narrow_copy(-1, 1, x.shape[-1] - 1),
        lambda d, c: d[..., 1:],
    ),
    "times a batch": (
        lambda x, c, t: x * t(np.stack([c.other, -c.other])),
        lambda d, c: d * np.stack([c.other, -c.other]),
    ),
    "repeated in a product": (
        lambda x, c, t: t(c.other) * x.sum(-1, keepdim=True),
        lambda d, c: c.other * d.sum(-1, keepdims=True),
    ),
    "repeated in front": (
        lambda x, c, t: t(np.stack([c.other] * 2)) * x.unsqueeze(0),
        lambda d, c: d * np.stack([c.other] * 2),
    ),
    "times a sparse number": (
        lambda x, c, t: x * t(c.other.reshape(-1)[0] * 2 + 1).to_sparse(),
        lambda d, c: d * (c.other.reshape(-1)[0] * 2 + 1),
    ),
    "cat last": (
        lambda x, c, t: cat(t)([x, x * 2, x], -1),
        lambda d, c: np.concatenate([d, 2 * d, d], -1),
    ),
    "plus nothing": (
        lambda x, c, t: lib_of(t).sparse_coo_tensor(c.shape, dtype=x.dtype) + x,
        lambda d, c: d,
    ),
    "select last": (lambda x, c, t: x.select(-1, 0), lambda d, c: d[..., 0]),
}
#: Products in which torch leaves a sparse dimension of size 1 as it is, and so all copies but one zero.
TORCH_KEEPS_ONE_COPY = ("repeated in a product", "repeated in front")
MATRICES = {
    "transpose": (lambda x, c, t: x.transpose(0, 1), lambda d, c: d.T),
    "t": (lambda x, c, t: x.t(), lambda d, c: d.T),
    "@ dense": (lambda x, c, t: x @ t(c.right), lambda d, c: d @ c.right),
    "dense @": (lambda x, c, t: t(c.left) @ x, lambda d, c: c.left @ d),
    "@ vector": (lambda x, c, t: x @ t(c.vector), lambda d, c: d @ c.vector),
    "mm": (lambda x, c, t: lib_of(t).mm(x, t(c.right)), lambda d, c: d @ c.right),
    "sparse.mm": (lambda x, c, t: lib_of(t).sparse.mm(x, t(c.right)), lambda d, c: d @ c.right),
    "mv": (lambda x, c, t: lib_of(t).mv(x, t(c.vector)), lambda d, c: d @ c.vector),
    "@ sparse": (lambda x, c, t: x @ x.t(), lambda d, c: d @ d.T),
    "addmm": (
        lambda x, c, t: lib_of(t).addmm(t(c.dense @ c.right), x, t(c.right), beta=2, alpha=3),
        lambda d, c: 5 * (d @ c.right),
    ),
    "sspaddmm": (
        lambda x, c, t: x.sspaddmm(x, t(c.other.T @ c.other), beta=2, alpha=3),
        lambda d, c: 2 * d + 3 * d @ (c.other.T @ c.other),
    ),
    "linear": (
        lambda x, c, t: lib_of(t).nn.functional.linear(t(c.right.T), x),
        lambda d, c: c.right.T @ d.T,
    ),
    "csr and back": (lambda x, c, t: x.to_sparse_csr().to_sparse(), lambda d, c: d),
}


def named(dense, case):
    """Where the case has elements, zeros included."""
    there = np.zeros(dense.shape, bool)
    there[tuple(case.indices)] = True
    return there


def lib_of(to_tensor):
    return to_tensor.__self__ if hasattr(to_tensor, "__self__") else to_tensor.lib


def cat(to_tensor):
    return lib_of(to_tensor).cat


def maker(lib):
    def to_tensor(array):
        return lib.tensor(array)

    to_tensor.lib = lib
    return to_tensor


def table_of(case):
    table = dict(GENERAL)
    if case.shape[0]:
        table |= DIMENSIONS
    if case.matrix:
        table |= MATRICES
    return table


def chosen(kind, shape):
    """The dtypes of a pattern: two of them, in turn, in the default run."""
    first = KINDS.index(kind) + list(SHAPES).index(shape)
    return DTYPES if FUZZ else [DTYPES[first % 5], DTYPES[(first + 2) % 5]]


def outcome(call):
    with contextlib.suppress(RuntimeError, TypeError, IndexError, NotImplementedError):
        return call()
    return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(1, FUZZ // 2000)))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_ops_against_dense_arrays(kind, shape, seed):
    """Each op x dtype x layout on one pattern, of which there are 5 x 7."""
    for dtype, layout in itertools.product(chosen(kind, shape), ("coo", "csr")):
        case = Case(seed, kind, shape, dtype)
        if layout == "csr" and not case.matrix:
            continue
        for name, (call, reference) in table_of(case).items():
            if layout == "csr" and (name in DIMENSIONS or name in ("coalesce", "csr and back")):
                continue
            result = call(case.of(tp, layout), case, maker(tp))
            wanted = np.asarray(reference(case.dense, case))
            got = plain(result)
            assert got.shape == wanted.shape, (name, dtype, layout)
            tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
            assert np.allclose(got, wanted, rtol=tolerance, atol=tolerance), (name, dtype, layout)


@pytest.mark.parametrize("seed", range(max(1, FUZZ // 2000)))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_layouts_dtypes_and_refusals_are_those_of_torch(kind, shape, seed):
    """Where torch computes a call, layout, dtype, shape and number of elements are the same."""
    torch = pytest.importorskip("torch", reason="torch says what a result looks like")
    dtypes = ("float64", "int64") if FUZZ else chosen(kind, shape)[:1]
    for dtype, layout in itertools.product(dtypes, ("coo", "csr")):
        case = Case(seed, kind, shape, dtype)
        if layout == "csr" and not case.matrix:
            continue
        for name, (call, _) in table_of(case).items():
            theirs = outcome(lambda: call(case.of(torch, layout), case, maker(torch)))  # noqa: B023
            if theirs is None or "csc" in str(theirs.layout) or name in TORCH_KEEPS_ONE_COPY:
                continue
            ours = call(case.of(tp, layout), case, maker(tp))
            where = (name, dtype, layout)
            assert str(ours.layout).rpartition(".")[2] == str(theirs.layout).rpartition(".")[2], (
                where
            )
            assert ours.dtype.name == str(theirs.dtype).rpartition(".")[2], where
            assert tuple(ours.shape) == tuple(theirs.shape), where
            assert np.allclose(plain(ours), plain(theirs)), where
            if ours.is_sparse:
                assert ours.sparse_dim() == theirs.sparse_dim(), where
                assert ours.coalesce()._nnz() == theirs.coalesce()._nnz(), where


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_a_batch(kind):
    cases = [Case(seed, kind, "matrix", "float64") for seed in range(3)]
    x = tp.stack([case.of(tp) for case in cases])
    right = np.stack([case.right for case in cases])
    wanted = np.stack([case.dense for case in cases]) @ right
    assert np.allclose(x.bmm(tp.tensor(right)).numpy(), wanted)
    with pytest.raises(RuntimeError, match="batches"):
        tp.bmm(x, tp.stack([case.of(tp).t() for case in cases]))


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "prod"])
@pytest.mark.parametrize("kind", ["coalesced", "unordered", "empty", "one"])
def test_terms_of_a_product_come_together_as_is_asked(kind, reduce):
    case = Case(2, kind, "matrix", "float64")
    found = tp.sparse.mm(case.of(tp, "csr"), tp.tensor(case.right), reduce).numpy()
    together = {"amax": np.max, "amin": np.min}.get(reduce, getattr(np, reduce, None))
    for row, stored in zip(found, named(case.dense, case), strict=True):
        number = found.tolist().index(row.tolist())
        terms = (case.dense[number][:, None] * case.right)[stored]
        wanted = together(terms, 0) if len(terms) else np.zeros(len(row))
        assert np.allclose(row, wanted)
    with pytest.raises(RuntimeError, match="reduce"):
        tp.sparse.mm(case.of(tp, "csr"), tp.tensor(case.right), "median")


PRODUCTS = {
    "mm": lambda x, d: tp.mm(x, d),
    "@": lambda x, d: x @ d,
    "sparse.mm": lambda x, d: tp.sparse.mm(x, d),
    "dense @": lambda x, d: d.t() @ x.t(),
    "addmm": lambda x, d: tp.addmm(tp.ones(3, 2, dtype=tp.float64), x, d, beta=0.5, alpha=2.0),
    "to_dense": lambda x, d: x.to_dense(),
    "sum": lambda x, d: x.sum(),
    "sum(1)": lambda x, d: x.sum(1, keepdim=True).to_dense(),
    "mul": lambda x, d: (x * 3).to_dense(),
    "mul dense": lambda x, d: (x * (d @ d.t())[:3, :4]).to_dense(),
    "mul sparse": lambda x, d: (x * x).to_dense(),
    "square": lambda x, d: x.square().to_dense(),
    "add dense": lambda x, d: (d @ d.t())[:3, :4] + x,
    "add sparse": lambda x, d: (x + x * 2).to_dense(),
    "@ sparse": lambda x, d: (x @ x.t()).to_dense(),
    "transpose": lambda x, d: x.t().to_dense(),
    "softmax": lambda x, d: tp.sparse.softmax(as_coo(x), 1).to_dense(),
    "log_softmax": lambda x, d: tp.sparse.log_softmax(as_coo(x), 0).to_dense(),
    "index_select": lambda x, d: x.index_select(0, tp.tensor([2, 0, 0])).to_dense(),
    "cat": lambda x, d: tp.cat([x, x], 1).to_dense(),
    "sampled_addmm": lambda x, d: tp.sparse.sampled_addmm(x, d[:3], d.t()).to_dense(),
    "mean of terms": lambda x, d: tp.sparse.mm(x.to_sparse_csr(), d, "mean"),
    "largest term": lambda x, d: tp.sparse.mm(x.to_sparse_csr(), d, "amax"),
    "sspaddmm": lambda x, d: x.sspaddmm(x, d @ d.t()).to_dense(),
    "bmm": lambda x, d: tp.stack([as_coo(x)] * 2).bmm(tp.stack([d, -d])),
    "mul a batch": lambda x, d: (as_coo(x) * tp.stack([(d @ d.t())[:3]] * 2)).to_dense(),
    "narrow": lambda x, d: x.narrow_copy(1, 1, 2).to_dense(),
}


def as_coo(x):
    return x if x.is_sparse else x.to_sparse()


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_by_finite_differences(name, layout):
    """Of the values of a sparse matrix, two of them at one place, and of the dense one."""
    rng = np.random.default_rng(3)
    where = tp.tensor([[0, 0, 1, 2, 0], [1, 3, 0, 2, 1]])
    values = tp.tensor(rng.normal(size=5), requires_grad=True)
    dense = tp.tensor(rng.normal(size=(4, 2)), requires_grad=True)

    def of_parts(values, dense):
        x = tp.sparse_coo_tensor(where, values, (3, 4))
        return PRODUCTS[name](x if layout == "coo" else x.to_sparse_csr(), dense)

    if name == "sampled_addmm":
        dense = tp.tensor(rng.normal(size=(4, 4)), requires_grad=True)
    assert tp.autograd.gradcheck(of_parts, (values, dense))


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", ["mm", "@", "to_dense", "sum", "mul dense", "mul sparse"])
def test_gradients_of_complex_values(name, layout):
    rng = np.random.default_rng(4)
    where = tp.tensor([[0, 0, 1, 2], [1, 3, 0, 2]])
    values = tp.tensor(rng.normal(size=4) + 1j * rng.normal(size=4), requires_grad=True)
    dense = tp.tensor(rng.normal(size=(4, 2)) + 1j * rng.normal(size=(4, 2)), requires_grad=True)

    def of_parts(values, dense):
        x = tp.sparse_coo_tensor(where, values, (3, 4))
        return PRODUCTS[name](x if layout == "coo" else x.to_sparse_csr(), dense)

    assert tp.autograd.gradcheck(of_parts, (values, dense))


def test_second_derivatives():
    where = tp.tensor([[0, 1, 1], [2, 0, 2]])
    values = tp.tensor([1.0, 2.0, 3.0], dtype=tp.float64, requires_grad=True)
    dense = tp.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
    assert tp.autograd.gradgradcheck(
        lambda v, d: tp.sparse_coo_tensor(where, v, (2, 3)) @ d, (values, dense)
    )


GRADIENTS = {
    "at its places": lambda case, of: case.of(tp, of),
    "at one place several times": lambda case, of: case.of(tp) + case.of(tp) * 2,
    "at other places": lambda case, of: tp.tensor(case.other).to_sparse(case.indices.shape[0]),
    "at no place": lambda case, of: case.of(tp, of) * 0,
    "dense": lambda case, of: tp.tensor(case.other),
}


@pytest.mark.parametrize("given", GRADIENTS)
@pytest.mark.parametrize("shape", ["matrix", "vector", "hybrid"])
@pytest.mark.parametrize("kind", ["coalesced", "unordered", "duplicates"])
def test_a_gradient_that_is_given_counts_at_the_places_of_the_tensor(kind, shape, given):
    """Elements of the same place each get the whole gradient of the place."""
    case = Case(5, kind, shape, "float64")
    for layout in ("coo", "csr") if case.matrix else ("coo",):
        values = tp.tensor(case.values, requires_grad=True)
        x = tp.sparse_coo_tensor(tp.tensor(case.indices), values, case.shape)
        gradient = GRADIENTS[given](case, layout)
        ((x if layout == "coo" else x.to_sparse_csr()) * 2).backward(gradient)
        wanted = 2 * plain(gradient)[tuple(case.indices)]
        assert np.allclose(values.grad.numpy(), wanted)


def test_a_gradient_is_set_at_the_places_of_the_tensor():
    case = Case(5, "duplicates", "matrix", "float64")
    x = case.of(tp, requires_grad=True)
    (x * 3).sum().backward()
    x.grad = x.grad * 2
    assert np.allclose(plain(x.grad), 6 * named(case.dense, case))
    with pytest.raises(RuntimeError, match="same places"):
        x.grad = tp.ones(case.shape).to_sparse()


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("kind", ["coalesced", "duplicates"])
def test_the_gradient_of_a_leaf_is_sparse_and_that_of_the_dense_matrix(kind, layout):
    case = Case(1, kind, "matrix", "float64")
    x = case.of(tp, layout, requires_grad=True)
    right = tp.tensor(case.right, requires_grad=True)
    (x @ right).square().sum().backward()
    dense = tp.tensor(case.dense, requires_grad=True)
    other = tp.tensor(case.right, requires_grad=True)
    (dense @ other).square().sum().backward()
    assert x.grad.layout is x.layout
    assert np.allclose(plain(right.grad), plain(other.grad))
    assert np.allclose(plain(x.grad), plain(dense.grad) * named(case.dense, case))
    assert x.grad is x.grad
    x.grad = None
    assert x.grad is None


def written_in_place():
    """Yield each method that writes to a sparse matrix, with what is given to it."""
    for name in sorted(f"{name}_" for name in TABLE if hasattr(tp.Tensor, f"{name}_")):
        for others in ((), ("itself",), (2.0,)):
            yield pytest.param(name, others, id=f"{name}{others}")


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize(("name", "others"), list(written_in_place()))
def test_a_leaf_that_is_written_without_a_record_stays_one(name, others, layout):
    case = Case(1, "coalesced", "matrix", "float64")
    plain_one, leaf = (case.of(tp, layout, requires_grad=tracked) for tracked in (False, True))
    given = [plain_one.detach().clone() if other == "itself" else other for other in others]
    try:
        getattr(plain_one, name)(*given)
    except (TypeError, RuntimeError):
        return  # not of these arguments
    seen = []
    leaf.register_hook(seen.append)
    leaf.to_dense().sum().backward()
    before = plain(leaf.grad)
    with tp.no_grad():
        assert getattr(leaf, name)(*given) is leaf
    assert leaf.requires_grad
    assert leaf.is_leaf
    assert np.array_equal(plain(leaf), plain(plain_one), equal_nan=True)
    if leaf.grad is not None:
        assert np.array_equal(plain(leaf.grad), before)
    leaf.grad = None
    leaf.to_dense().sum().backward()
    assert len(seen) == 2
    assert leaf.grad._nnz() == leaf._nnz()


# --- what is not there says so ------------------------------------------------------------------


def arguments(op, shown=lambda x: x):
    """Some arguments for an op, the first tensor sparse; by the names of its parameters."""
    sparse = shown(tp.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)))
    dense = tp.ones(2, 2)
    known = {
        "dim": 0, "dims": (0,), "dim0": 0, "dim1": 1, "p": 2, "k": 1, "n": 1, "size": (2, 2),
        "shape": (2, 2), "sizes": (2, 2), "dtype": tp.float32, "exponent": 2.0, "diagonal": 0,
        "index": tp.tensor([0, 1]), "value": 1.0, "mask": dense > 0, "min": 0.0, "max": 1.0,
        "tensors": [sparse, sparse], "chunks": 2, "repeats": 2, "shifts": 1, "weight": 0.5,
        "decimals": 1, "q": 0.5, "dims0": 0, "source": 0, "destination": 1, "condition": dense > 0,
    }  # fmt: skip
    found = []
    for number, name in enumerate(op.names):
        if name in op.defaults:
            break
        found.append(
            known["tensors"]
            if name == "tensors"
            else sparse
            if number == 0
            else known.get(name, dense)
        )
    return found


def test_every_other_op_refuses_sparse_tensors():
    """Of all ops with a tensor as first argument: no dense kernel gets one, and none gives another type."""
    refused, computed = [], []
    for op in op_registry.all_ops():
        if op.name in TABLE or op.name.startswith(("sparse.", "amp.")) or not op.names:
            continue
        if op.names[0] not in ("input", "tensors", "self", "A", "a", "x"):
            continue
        try:
            result = op.call(*arguments(op))
        except Intercepted as error:
            refused.append(str(error))
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue  # the other arguments, or the dimension, are no good: before any kernel
        else:
            computed.append((op, result))
    assert len(refused) > 200
    assert all("sparse_coo" in message for message in refused)
    assert {op.name for op, _ in computed} <= ALSO
    for op, result in computed:
        assert np.allclose(plain(result), plain(op.call(*arguments(op, tp.Tensor.to_dense))))


#: Ops without a form of their own, which are made of others that have one.
ALSO = {"graph.detach", "inner", "isreal", "ldexp"}


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tp.exp(x),
        lambda x: x + 1,
        lambda x: x > 0,
        lambda x: x.exp_(),
        lambda x: tp.ones(2, 3) / x,
        lambda x: tp.where(tp.ones(2, 3) > 0, x, 0.0),
        lambda x: tp.nn.functional.gelu(x),
        lambda x: tp.nn.functional.conv1d(x, tp.ones(1, 1, 1)),
        lambda x: tp.einsum("ij->ji", x),
        lambda x: tp.neg(x, out=tp.zeros(2, 3)),
        lambda x: x.view(6),
        lambda x: x[0:1],
        lambda x: x.contiguous(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: x.data_ptr(),
        lambda x: np.asarray(x),
        lambda x: tp.vmap(lambda row: row * 2)(x),
    ],
)
def test_refusals(call):
    x = tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    with pytest.raises((RuntimeError, TypeError)) as caught:
        call(x)
    assert "parse" in str(caught.value) or "to_dense" in str(caught.value)
    assert x.to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]


def test_methods_called_through_the_class_are_those_of_the_layout():
    coo, csr = tp.eye(2).to_sparse(), tp.eye(2).to_sparse_csr()
    for tensor, names in (
        (coo, ("indices", "values", "is_coalesced", "_nnz", "_indices", "_values", "coalesce")),
        (csr, ("crow_indices", "col_indices", "values", "_nnz")),
    ):
        for name in (*names, "sparse_dim", "dense_dim"):
            found, expected = getattr(tp.Tensor, name)(tensor), getattr(tensor, name)()
            assert str(found) == str(expected)
    assert tp.Tensor.sparse_dim(tp.ones(2)) == 0
    with pytest.raises(RuntimeError, match="expected sparse row compressed"):
        tp.Tensor.crow_indices(coo)


@pytest.mark.parametrize("first", [False, True])
def test_a_deep_copy_has_its_gradient_once(first):
    x = tp.eye(3).to_sparse().requires_grad_()
    x.grad = 2 * tp.eye(3).to_sparse()
    pair = copy.deepcopy([x.grad, x] if first else [x, x.grad])
    made, gradient = reversed(pair) if first else pair
    assert made.grad is gradient
    assert gradient is not x.grad
    made.grad = None
    assert x.grad.to_dense().tolist() == (2 * tp.eye(3)).tolist()
