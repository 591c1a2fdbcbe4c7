"""Kernels that gather, scatter and index, against NumPy: threads, strides, places that do not exist."""

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug.plugin import KernelTable  # noqa: E402
from tensorplug_cpu_cython import indexing as keyed, indexing_gather  # noqa: E402
from tensorplug_cpu_cython.kernels import indexing as family  # noqa: E402

SHAPES = [(7,), (100_003,), (3, 5), (300, 400), (2, 3, 4), (20, 30, 40), (1000, 3), (70, 16, 1)]
TYPES = [
    np.float32, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_,
    np.complex64, np.complex128,
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("threads")


@pytest.fixture(scope="module")
def kernels():
    table = KernelTable("cpu")
    family.build(table)
    return {kernel.op: kernel.function for kernel in table}


def refuse(*_):
    raise AssertionError("left to NumPy")


def numbers(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 20).astype(dtype)


def spots(shape, size, seed=1):
    return np.random.default_rng(seed).integers(0, size, shape)


def added(target, index, dim, values):
    """Return target with values added, in float64 or integers."""
    exact = target.astype(np.float64) if target.dtype.kind == "f" else target.copy()
    grid = list(np.ogrid[tuple(slice(s) for s in index.shape)])
    grid[dim] = index
    np.add.at(exact, tuple(grid), values.astype(exact.dtype))
    return exact


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_gather(shape, dtype):
    array = numbers(*shape).astype(dtype)
    for dim in range(len(shape)):
        index = spots(shape, shape[dim])
        expected = np.take_along_axis(array, index, dim)
        np.testing.assert_array_equal(
            indexing_gather.gather_kernel(refuse)(array, dim, index), expected
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_scatter_add(shape, dtype):
    array, values = numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=2)
    for dim in range(len(shape)):
        index = spots(shape, shape[dim])
        expected = added(array, index, dim, values)
        result = indexing_gather.combine(array, dim, index, values, indexing_gather.ADD, refuse)
        np.testing.assert_allclose(result + 0, expected + 0, rtol=1e-4, atol=1e-4)
        again = array.copy()
        assert (
            indexing_gather.combine(again, dim, index, values, indexing_gather.ADD, refuse, again)
            is again
        )
        np.testing.assert_array_equal(again, result)
        sums = indexing_gather.gathered_sum(values, shape, dim, index, refuse)
        expected = added(np.zeros_like(array), index, dim, values)
        np.testing.assert_allclose(sums + 0, expected + 0, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
def test_scatter_reduce(kernels, reduce):
    array, values = numbers(40, 50) / 20, numbers(40, 50, seed=2) / 20
    values[3, 4] = np.nan
    index = spots((40, 50), 40)
    expected = array.astype(np.float64)
    ufunc = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    ufunc.at(expected, (index, np.arange(50)[None]), values)
    result = kernels["scatter_reduce"](array, 0, index, values, reduce, True)
    np.testing.assert_allclose(result, expected, rtol=1e-4)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [tp.bool, tp.complex64, tp.complex128, tp.int32], ids=str)
def test_scatter_reduce_of_other_dtypes(dtype, reduce, include_self):
    tp.manual_seed(0)
    index = tp.randint(0, 6, (5, 7))
    array, values = ((tp.randn(n, 7, dtype=tp.complex64) * 2).to(dtype) for n in (8, 5))
    if dtype.is_complex and reduce in ("amax", "amin"):
        pytest.skip("complex numbers have no order")

    def found():
        try:
            return array.scatter_reduce(0, index, values, reduce, include_self=include_self)
        except (RuntimeError, NotImplementedError) as error:
            return type(error)

    ours = found()
    with tp.prefer("cpu_numpy"):
        theirs = found()
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        np.testing.assert_allclose(ours.numpy() + 0, theirs.numpy() + 0, rtol=1e-5)


@pytest.mark.parametrize("dtype", [tp.bool, tp.complex64, tp.complex128], ids=str)
def test_sums_at_places_of_other_dtypes(dtype):
    tp.manual_seed(1)
    array, values = ((tp.randn(n, 7, dtype=tp.complex64) * 2).to(dtype) for n in (4, 9))
    index, both = tp.randint(0, 4, (9,)), (tp.randint(0, 4, (9,)), tp.randint(0, 7, (9,)))

    def found():
        return [
            array.index_add(0, index, values),
            array.t().index_add(1, index, values.t()),
            array.clone().index_add_(0, index, values),
            array.index_put((index,), values, accumulate=True),
            array.index_put(both, values[:, 0], accumulate=True),
            array.put(index, values[:, 1], accumulate=True),
        ]

    ours = found()
    with tp.prefer("cpu_numpy"):
        theirs = found()
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.numpy() + 0, other.numpy() + 0, rtol=1e-5, atol=1e-6)


def test_the_last_of_several_values_stays(kernels):
    index = np.zeros((1, 5000), np.int64)
    values = np.arange(5000, dtype=np.float32)[None]
    result = kernels["scatter"](np.zeros((1, 3), np.float32), 1, index, values, None)
    np.testing.assert_array_equal(result, [[4999, 0, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.complex128])
def test_index(dtype):
    array = numbers(30, 40, 50).astype(dtype)
    for given in (array, array.transpose(2, 0, 1), array[::-2, :, ::3]):
        first = np.random.default_rng(3).integers(-given.shape[0], given.shape[0], 17)
        second = np.random.default_rng(4).integers(-given.shape[1], given.shape[1], (3, 17))
        third = np.random.default_rng(5).integers(-given.shape[2], given.shape[2], (3, 1))
        for indices in ([first], [None, second], [None, None, third], [None, second, third]):
            key = tuple(slice(None) if item is None else item for item in indices)
            found = keyed.index_kernel(lambda a, i: a[key])(given, indices)  # noqa: B023
            np.testing.assert_array_equal(found, given[key])


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    array = numbers(60, 70)
    rows = np.random.default_rng(3).permutation(60)[:20] - 60 * (np.arange(20) % 2)
    for values in (numbers(20, 70), numbers(70), np.float32(3)):
        expected = array.copy()
        if accumulate:
            np.add.at(expected, rows, values)
        else:
            expected[rows] = values
        result = keyed.index_put(array, [rows], values, accumulate, refuse)
        np.testing.assert_array_equal(result, expected)
        turned = np.asfortranarray(array)
        assert keyed.index_put(turned, [rows], values, accumulate, refuse, turned) is turned
        np.testing.assert_array_equal(turned, expected)
    g = numbers(20, 70)
    expected = np.zeros((60, 70), np.float32)
    np.add.at(expected, rows, g)
    np.testing.assert_array_equal(keyed.indexed_sum(g, (60, 70), [rows], refuse), expected)


def test_broadcast_and_reversed_arrays():
    array = np.broadcast_to(numbers(50), (40, 50))
    index = spots((40, 50), 50)
    np.testing.assert_array_equal(
        indexing_gather.gather_kernel(refuse)(array, 1, index), np.take_along_axis(array, index, 1)
    )
    index = np.broadcast_to(spots((40, 1), 40), (40, 50))
    np.testing.assert_array_equal(
        indexing_gather.gather_kernel(refuse)(array[::-1, ::-1], 0, index),
        np.take_along_axis(array[::-1, ::-1], index, 0),
    )


@pytest.mark.parametrize("size", [5, 20_000])
@pytest.mark.parametrize("wrong", [-1, 1 << 40, None])
def test_a_place_that_does_not_exist(kernels, size, wrong):
    wrong = size if wrong is None else wrong
    index = spots((size,), size)
    index[size // 2] = wrong
    array = numbers(size)
    for op, arguments in (
        ("gather", (array, 0, index)),
        ("scatter", (array, 0, index, array.copy(), None)),
        ("scatter_add", (array, 0, index, array.copy())),
        ("scatter_reduce", (array, 0, index, array.copy(), "amax", True)),
    ):
        before = array.copy()
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds"):
            kernels[op](*arguments)
        if op != "gather":
            with pytest.raises(RuntimeError, match="out of bounds"):
                kernels[op](*arguments, out=array)
        np.testing.assert_array_equal(array, before)
    wrong = -size - 1 if wrong == -1 else wrong
    index[size // 2] = wrong
    with pytest.raises(IndexError, match="out of bounds"):
        kernels["index"](array, [index])
    for accumulate in (False, True):
        with pytest.raises(IndexError, match="out of bounds"):
            kernels["index_put"](array, [index], array.copy(), accumulate, out=array)
    np.testing.assert_array_equal(array, before)


def test_rows():
    table, indices = numbers(50, 33), spots((20, 30), 50)
    np.testing.assert_array_equal(keyed.rows_of(table, indices, refuse), table[indices])
    np.testing.assert_array_equal(
        keyed.rows_of(table.T, indices % 33, refuse), table.T[indices % 33]
    )
    g = numbers(20, 30, 33)
    expected = np.zeros((50, 33))
    np.add.at(expected, indices, g)
    np.testing.assert_allclose(keyed.rows_sum(g, indices, 50, -1, refuse), expected, atol=1e-3)
    expected[7] = 0
    np.testing.assert_allclose(keyed.rows_sum(g, indices, 50, 7, refuse), expected, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8, np.complex128])
@pytest.mark.parametrize("accumulate", [False, True])
def test_one_number_into_rows(dtype, accumulate):
    if accumulate and dtype is np.complex128:
        dtype = np.int64
    array = np.arange(7 * 37).reshape(7, 37).astype(dtype)
    at = np.array([4, -6, 0, 4])
    for target in (array, array[:, ::2], array.T):
        expected = target.copy()
        if accumulate:
            np.add.at(expected, at, dtype(3))
        else:
            expected[at] = 3
        number = np.asarray(3, dtype)
        found = keyed.index_put(target, [at], number, accumulate, None)
        np.testing.assert_array_equal(found, expected)
        inside = target.copy(order="A")
        keyed.index_put(inside, [at], number, accumulate, None, inside)
        np.testing.assert_array_equal(inside, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_one_place_for_many(dtype):
    index = np.concatenate([np.full(5000, 3), spots((3000,), 7), np.full(2000, -4)])
    array, values = numbers(7, dtype=dtype), numbers(len(index), dtype=dtype, seed=2)
    expected = added(array, index, 0, values)
    result = keyed.index_put(array, [index], values, True, refuse)
    np.testing.assert_allclose(result + 0, expected + 0, rtol=1e-4, atol=1e-2)
    if array.dtype.kind == "c":  # without an order
        return
    index %= 7
    exact = array.copy()
    np.maximum.at(exact, index, values)
    largest = indexing_gather.combine(array, 0, index, values, indexing_gather.MAXIMUM, refuse)
    np.testing.assert_array_equal(largest, exact)


@pytest.mark.parametrize("columns", [1, 3, 16])
@pytest.mark.parametrize("wrong", [3, -4])
def test_short_rows_tell_of_missing_places(columns, wrong):
    array, index = numbers(500, 3), spots((500, columns), 3)
    index[431, columns // 2] = wrong
    values = numbers(500, columns)
    before = array.copy()
    with pytest.raises(AssertionError):
        indexing_gather.gather_kernel(refuse)(array, 1, index)
    with pytest.raises(AssertionError):
        indexing_gather.scatter(array, 1, index, values, refuse, array)
    with pytest.raises(AssertionError):
        indexing_gather.combine(array, 1, index, values, indexing_gather.ADD, refuse, array)
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint8"]
)
def test_means_of_what_is_scattered(name, include_self):
    """Beside sums in double: halves are rounded once, integers downwards."""
    rng = np.random.default_rng(0)
    dtype = getattr(tp, name)
    low = 0 if name == "uint8" else -9
    for shape, dim in (((7,), 0), ((5, 4), 0), ((5, 4), 1), ((3, 4, 6), 1)):
        count = list(shape)
        count[dim] = 11
        index = rng.integers(0, shape[dim] - 1, count)  # the last one has none
        input, src = (tp.tensor(rng.integers(low, 9, size)).to(dtype) for size in (shape, count))
        total = input.double().numpy() * include_self
        number = np.full(shape, float(include_self))
        for place in np.ndindex(*count):
            at = list(place)
            at[dim] = index[place]
            total[tuple(at)] += float(src[place])
            number[tuple(at)] += 1
        mean = total / np.maximum(number, 1)
        expected = np.where(
            number > include_self, np.floor(mean) if "int" in name else mean, input.double()
        )
        found = input.scatter_reduce(dim, tp.tensor(index), src, "mean", include_self=include_self)
        assert found.dtype is dtype
        assert tp.equal(found, tp.tensor(expected).to(dtype))


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
@pytest.mark.parametrize(
    ("shape", "dim"), [((40000,), 0), ((600, 70), 0), ((3, 900, 14), 1), ((70, 600), 1)]
)
@pytest.mark.parametrize("few", [1, 7, 36, 60])
def test_halves_that_are_added_at_few_places(shape, dim, dtype, few):
    """Some of them several times, from the end as well; all sums of a place are rounded once."""
    rng = np.random.default_rng(few)
    dense = tp.tensor(rng.standard_normal(shape)).to(dtype)
    for x in (dense, dense.transpose(0, -1).contiguous().transpose(0, -1)):
        places = rng.integers(0, shape[dim], few)
        places[few // 2 :] = places[0]
        values = tp.tensor(rng.standard_normal([*shape[:dim], few, *shape[dim + 1 :]])).to(dtype)
        expected = x.float().numpy()
        np.add.at(expected, (slice(None),) * dim + (places,), values.float().numpy())
        expected = tp.tensor(expected).to(dtype)
        before = x.clone()
        assert tp.equal(x.index_add(dim, tp.tensor(places), values), expected)
        key = [None] * dim + [tp.tensor(np.where(np.arange(few) % 2, places, places - shape[dim]))]
        assert tp.equal(x.index_put(key, values, accumulate=True), expected)
        assert tp.equal(x, before)
        assert tp.equal(x.clone().index_add_(dim, tp.tensor(places), values), expected)
        assert tp.equal(x.clone().index_put_(key, values, accumulate=True), expected)
        key[dim] = tp.tensor([0] * few + [shape[dim]])
        for write in (x.index_put, x.index_put_):
            with pytest.raises(IndexError):
                write(key, tp.ones((), dtype=dtype), accumulate=True)
        with pytest.raises(IndexError):
            x.index_add_(dim, tp.tensor([-1]), values.narrow(dim, 0, 1))
        assert tp.equal(x, before)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 0)])
def test_no_place_at_all(shape, dtype, accumulate):
    """What is written nowhere leaves a copy, without a call of what lies below."""
    x = np.ones(shape, dtype)
    empty = np.zeros(0, np.int64)
    found = keyed.index_put(x, [empty], np.ones((), dtype), accumulate, refuse)
    assert found is not x
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("shape", [(5,), (4, 6), (3, 4, 5)], ids=str)
def test_reduced_truth_values(shape, include_self, reduce):
    draw = np.random.default_rng(0)
    for dim in range(len(shape)):
        index = draw.integers(0, shape[dim], shape)
        for order in "CF":
            input, src = (np.asarray(draw.random(shape) > 0.5, order=order) for _ in range(2))
            given = [tp.from_numpy(array) for array in (input, index, src)]

            def reduced(x, i, s, dim=dim):
                return x.scatter_reduce(dim, i, s, reduce, include_self=include_self)

            found = reduced(*given)
            with tp.prefer("cpu_numpy"):
                expected = reduced(*given)
            assert found.dtype is tp.bool
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
@pytest.mark.parametrize("shape", [(1,), (5,), (5, 3), (3, 5, 2), (0, 5)])
@pytest.mark.parametrize("step", [1, 2])
def test_complex_numbers_are_added_at_positions_by_their_parts(dtype, shape, step):
    tp.manual_seed(0)
    start = tp.randn((*shape[:-1], shape[-1] * step), dtype=dtype)[..., ::step]
    for dim, size in enumerate(shape):
        index = tp.randint(0, max(size, 1), (7 if size else 0,))
        slices = tp.randn((*shape[:dim], len(index), *shape[dim + 1 :]), dtype=dtype)
        for source in (
            slices,
            slices.conj(),
            slices.mT.contiguous().mT if len(shape) > 1 else slices,
        ):
            found = start.index_add(dim, index, source, alpha=-1)
            with tp.prefer("cpu_numpy"):
                tp.testing.assert_close(found, start.index_add(dim, index, source, alpha=-1))
