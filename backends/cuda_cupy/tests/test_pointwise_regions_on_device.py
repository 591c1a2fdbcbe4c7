"""Pointwise ops of compiled programs run as one kernel, and do what their own kernels do."""

import itertools
import math
import os

import numpy as np
import pytest
from on_device import FLOATS, needs_device

import tensorplug as tp
from tensorplug.plugin import ArrayFacts, Kernel, get_op
from tensorplug_cuda_cupy.regions import expressions, pointwise
from tensorplug_cuda_cupy.regions.pointwise_source import Line

pytestmark = needs_device
F = tp.nn.functional
WHOLE = [tp.uint8, tp.int8, tp.int16, tp.int32, tp.int64]
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.5, 6e4, 1e-7)
#: Of equal halves CuPy's kernels return the first one, of other equal numbers the zero that is not negative.
EXTREMES = ("clamp_max", "clamp_min", "maximum", "minimum")
OPTIONS = {
    "elu": (1.5, 1.0, 0.7), "elu_backward": (1.5, 1.0, 0.7), "hardtanh": (-0.5, 2.0),
    "hardtanh_backward": (-0.5, 2.0), "leaky_relu": (0.2,), "leaky_relu_backward": (0.2,),
    "softplus": (2.0, 20.0), "softplus_backward": (2.0, 20.0), "threshold": (0.3, -1.0),
    "gelu": ("tanh",), "gelu_backward": ("none",),
}  # fmt: skip


@pytest.fixture(autouse=True)
def regions(monkeypatch):
    """Return the list to which each run of a region adds whether it was one."""
    found = []
    call = pointwise._Fused.__call__

    def noted(self, arrays):
        results = call(self, arrays)
        found.append(results is not None)
        return results

    monkeypatch.setattr(pointwise._Fused, "__call__", noted)
    yield found
    assert not tp.plugins.quarantined_fusers()


def numbers(dtype, seed=0):
    """Return numbers of a dtype on the device, special ones among them."""
    generator = np.random.default_rng(seed)
    if dtype is tp.bool:
        return tp.tensor(generator.integers(0, 2, 288), dtype=dtype).cuda()
    if dtype in WHOLE:
        return tp.tensor(generator.integers(-100, 100, 288)).to(dtype).cuda()
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    drawn = generator.standard_normal(288 - len(pairs))
    return tp.tensor(np.concatenate([pairs[:, seed % 2], drawn])).to(dtype).cuda()


def equal(found, wanted, signs=True):
    """Return whether two tensors are the same bit for bit, but for kinds of NaN, and perhaps of zeros."""
    found, wanted = found.cpu(), wanted.cpu()
    if found.dtype != wanted.dtype or found.stride() != wanted.stride():
        return False
    if not found.dtype.is_floating_point:
        return tp.equal(found, wanted)
    same = found == wanted
    if signs:
        same &= found.signbit() == wanted.signbit()
    return bool((same | (found.isnan() & wanted.isnan())).all())


def compiled(function, *args):
    """Return what a compiled function comes to once it runs as a graph."""
    run = tp.compile(function, fullgraph=True)
    with tp.no_grad():
        for _ in range(2):
            run(*args)
        return run(*args)


#: Everything with TENSORPLUG_FUZZ, otherwise a part.
FUZZ = "TENSORPLUG_FUZZ" in os.environ


def cases():
    """Return each expression, with all dtypes that it is of or with one of them."""
    for names, dtypes in (
        (expressions.OF_FLOATS, FLOATS),
        (expressions.OF_NUMBERS, (*FLOATS, *WHOLE)),
        (expressions.COMPARISONS, (*FLOATS, *WHOLE)),
        ((*expressions.OF_BITS, "bitwise_not"), (tp.bool, *WHOLE)),
        (expressions.ACTIVATIONS, FLOATS),
    ):
        for number, name in enumerate(names):
            yield from (
                (name, dtype)
                for other, dtype in enumerate(dtypes)
                if FUZZ or other == number % len(dtypes)
            )


@pytest.mark.parametrize(("name", "dtype"), tuple(cases()), ids=str)
def test_each_expression_is_its_ops_kernel(name, dtype, regions):
    op = get_op(name)
    options = OPTIONS.get(name, ())
    text = expressions.expression
    taken = next(
        count
        for count in (1, 2)
        if any(
            [text(name, (dtype.name,) * count, result, options) for result in (dtype.name, "bool")]
        )
    )
    arrays = [numbers(dtype, seed) for seed in range(taken)]

    def program(*arrays):
        result = op.call(*arrays, *options)
        # Another step, as one alone is no region; the first result is needed outside, too.
        return result, tp.where(result == result, result, arrays[0].to(result.dtype))

    with tp.no_grad():
        wanted = program(*arrays)
    found = compiled(program, *arrays)
    assert regions
    assert all(regions)
    for one, other in zip(found, wanted, strict=True):
        if name in expressions.ACTIVATIONS:  # their own kernels contract products with sums
            eps = tp.finfo(dtype).eps
            tp.testing.assert_close(one, other, rtol=4 * eps, atol=4 * eps, equal_nan=True)
        else:
            assert equal(one, other, signs=name not in EXTREMES)


CONVERSIONS = [
    (source, result)
    for number, source in enumerate((tp.bool, *WHOLE, *FLOATS))
    for other, result in enumerate((tp.bool, *WHOLE, *FLOATS))
    if FUZZ or (number - other) % 5 == 1
]


@pytest.mark.parametrize(("source", "result"), CONVERSIONS, ids=str)
def test_conversions(source, result):
    x = numbers(source)
    if source.is_floating_point and result in WHOLE:
        x = x.nan_to_num(0, 1, 2).clamp(0, 100)

    def program(x):
        return (x == x, x.to(result), x.to(result) == x.to(result))

    with tp.no_grad():
        wanted = program(x)
    for one, other in zip(compiled(program, x), wanted, strict=True):
        assert equal(one, other)


UNARY = ("neg", "exp", "tanh", "sigmoid", "sqrt", "square", "floor", "rsqrt", "abs")
BINARY = ("add", "sub", "mul", "div", "maximum", "pow", "atan2")
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.mT.contiguous().mT,
    "sliced": lambda x: tp.cat([x, x], -1)[..., ::2],
    "spread": lambda x: x[..., :1].expand(x.shape),
    "row": lambda x: x[..., :1, :],
    "column": lambda x: x[..., :1],
    "one": lambda x: x.flatten()[0],
    "flipped": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
}


SEEDS = range(400 if FUZZ else 24)
SHAPES = ((3, 4), (2, 3, 5), (4, 1, 3), (1, 1), (0, 3), (2, 3, 2, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_at_random_are_the_same_bit_for_bit(seed):
    generator = np.random.default_rng(seed)
    dtype, shape = FLOATS[seed % 4], SHAPES[generator.integers(len(SHAPES))]
    layouts = [name for name in LAYOUTS if name != "one" or math.prod(shape)]
    given = []
    for _ in range(3):
        base = tp.tensor(np.asarray(generator.standard_normal(shape))).to(dtype).cuda()
        given.append(LAYOUTS[generator.choice(layouts)](base))
    binary = [name for name in BINARY if dtype is not tp.float16 or name not in EXTREMES]
    steps = [
        (str(generator.choice([*UNARY, *binary])), *generator.integers(0, 10, 2).tolist())
        for _ in range(generator.integers(2, 10))
    ]
    kept = set(generator.integers(0, len(steps), 2).tolist())

    def program(*arrays):
        values = list(arrays)
        for name, first, second in steps:
            taken = [values[first % len(values)], values[second % len(values)] * 0.5]
            values.append(get_op(name).call(*taken[: 1 + (name in BINARY)]))
        return [values[number + len(arrays)] for number in {*kept, len(steps) - 1}]

    with tp.no_grad():
        wanted = program(*given)
    for one, other in zip(compiled(program, *given), wanted, strict=True):
        assert equal(one, other)


def test_other_sizes_need_no_other_kernel(regions):
    run = tp.compile(lambda x, y: (x * 2 + y).tanh() * x, fullgraph=True)
    known = []
    with tp.no_grad():
        for size in (3, 5, 7, 9, 144):
            x, y = numbers(tp.float32)[: size * 2].view(size, 2), tp.ones(2).cuda()
            for _ in range(3):
                assert equal(run(x, y), (x * 2 + y).tanh() * x)
            known.append(pointwise._compiled.cache_info().misses)
    assert len(set(known)) == 1
    assert all(regions)


def test_arrays_that_lie_otherwise_are_left_to_the_kernels():
    facts = [ArrayFacts((2, 3), (3, 1), tp.float32, False) for _ in range(2)]
    line = Line("{0} + {0}", ("float32", "float32"), (0, 1))
    fused = pointwise._Fused([(0, facts[0])], [(1, facts[1])], [line], [])
    x = tp.arange(6.0).view(2, 3).cuda()
    (result,) = fused([x._array])
    assert result.get().tolist() == [[0, 2, 4], [6, 8, 10]]
    assert fused([x.view(3, 2).mT._array]) is None


def test_kernels_of_others_are_left_alone(regions):
    def doubled(input):
        return input + input

    class Plugin:
        name = "doubled"

        @tp.plugin.hookimpl
        def tensorplug_kernels(self):
            return [Kernel("exp", "cuda", doubled, None, 900)]

    tp.plugins.register(Plugin())
    try:
        x = numbers(tp.float32)[144:]
        found = compiled(lambda x: ((x + 1) * 2).exp() * 3 - 1, x)
        assert equal(found, (x + 1) * 2 * 2 * 3 - 1)
        assert len(set(regions)) == 1
    finally:
        tp.plugins.unregister("doubled")


def test_training_is_the_same(regions):
    def loss(x, w):
        y = F.silu(x * w + 0.5) * x.sigmoid() - (w * w).sqrt()
        return (y.tanh() ** 2).sum()

    given = [numbers(tp.float32, seed)[144:].abs() + 0.1 for seed in (2, 4)]
    results = []
    for run in (loss, tp.compile(loss, fullgraph=True)):
        x, w = [value.clone().requires_grad_() for value in given]
        for _ in range(3):
            x.grad = w.grad = None
            run(x, w).backward()
        results.append((x.grad, w.grad))
    assert regions
    for one, other in zip(*results, strict=True):
        tp.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(50))
def test_collapsed_dimensions_show_the_same_elements(seed):
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 4, generator.integers(1, 6)).tolist())

    def strides(gap):
        step, found = 1, [0] * len(shape)
        for d in generator.permutation(len(shape)):
            found[d] = step
            step *= shape[d] * gap
        return tuple(found)

    dense = strides(1)
    spread = tuple([stride * int(generator.integers(2)) for stride in dense])
    others = [strides(int(generator.integers(1, 3))), spread]
    sizes, found = pointwise.collapsed(shape, dense, [dense, *others])

    def places(shape, strides):
        axes = [np.arange(size) * stride for size, stride in zip(shape, strides, strict=True)]
        total = np.zeros(shape, int)
        for d, axis in enumerate(axes):
            total += axis.reshape([-1 if e == d else 1 for e in range(len(shape))])
        return total.ravel()

    whole = [places(shape, one) for one in (dense, *others)]
    fewer = [places(sizes, one) for one in found]
    assert sorted(zip(*whole, strict=True)) == list(zip(*fewer, strict=True))
    assert len(sizes) <= len(shape)
