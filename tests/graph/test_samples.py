"""Every op's samples, captured and compiled: bit for bit as the op itself, also on other data.

By default each sixth op is captured, and each twelfth compiled; with TENSORPLUG_FUZZ in the environment all.
"""

import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.graph import Uncapturable, capture
from tensorplug.nn import functional as F
from tensorplug.testing import cases, making
from tensorplug.testing.records import all_records

#: Ops whose results no two calls share: memory as it is found, and results that only data shapes.
UNDEFINED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}

RECORDS = sorted([r for r in all_records() if r.op not in UNDEFINED], key=lambda record: record.op)
SHARES = 6
FUZZ = bool(os.environ.get("TENSORPLUG_FUZZ"))


def same(a, b):
    a, b = (list(cases.tensors_in(value)) for value in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype
        x, y = x.detach().numpy(), y.detach().numpy()
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes() or np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def signature(sample):
    return [(t.shape, t.dtype) for t in cases.tensors_in((sample.args, sample.kwargs))]


def copies(sample):
    return cases.map_tensors((sample.args, sample.kwargs), lambda tensor: tensor.clone())


def compare(record):
    """Return (compared, refused)."""
    op = get_op(record.op)
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    samples = cases.samples_of(record, "cpu", dtype)
    making.seed(f"other {record.op}")
    others = record.samples(cases.Maker("cpu", dtype), dtype)
    compared = refused = 0
    for sample, other in zip(samples, others, strict=True):
        if any(isinstance(value, tp.Generator) for value in sample.kwargs.values()):
            continue  # its state is not the sample's
        try:
            args, kwargs = copies(sample)
            graph = capture(
                lambda args, kwargs: op.call(*args, **kwargs), args, kwargs, shapes_from_data=True
            )
        except Uncapturable:
            refused += 1
            continue
        graph.check()
        for each in (sample, other) if signature(sample) == signature(other) else (sample,):
            given, again = copies(each), copies(each)
            tp.manual_seed(1)
            try:
                wanted = op.call(*given[0], **given[1])
            except RuntimeError:
                # Other data does not fit, such as a matrix that has to be definite.
                continue
            tp.manual_seed(1)
            same(wanted, graph(*cases.tensors_in(again)))
            same(given, again)
            compared += 1
    return compared, refused


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES if FUZZ else 1))
def test_samples(share):
    found = {record.op: compare(record) for record in RECORDS[share::SHARES]}
    assert sum([compared for compared, _ in found.values()]) > 900
    truths = {"allclose", "equal", "fewest_positive", "is_within"}  # which are no tensors
    assert {op for op, (_, refused) in found.items() if refused} <= truths


def compare_in_place(record):
    """Return (compared, refused) of the in-place variant of an op, where nothing may depend on data."""
    op = get_op(record.op)
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    compared, refused = 0, []
    for sample in cases.samples_of(record, "cpu", dtype):

        def program(args, kwargs):
            first, *others = args
            return getattr(first + 0, op.inplace)(*others, **kwargs)

        given, again = copies(sample), copies(sample)
        try:
            tp.manual_seed(1)
            wanted = program(*given)
        except (RuntimeError, TypeError, AttributeError):
            continue  # of another dtype or shape than what it is written into, or no tensor
        try:
            graph = capture(program, *again)
        except Uncapturable as error:
            refused.append(error.reason)
            continue
        tp.manual_seed(1)
        same(wanted, graph(*cases.tensors_in(again)))
        compared += 1
    return compared, refused


def test_samples_in_place_have_the_shape_of_what_they_write():
    found = {r.op: compare_in_place(r) for r in RECORDS if get_op(r.op).inplace}
    assert sum([compared for compared, _ in found.values()]) > 500
    assert {op for op, (_, why) in found.items() if "depends on data" in str(why)} == set()


# --- compiled ---------------------------------------------------------------------------------------

PARTS = 12


def leaves_of(sample, recorded):
    def leaf(tensor):
        inexact = tensor.dtype.is_floating_point or tensor.dtype.is_complex
        return tensor.detach().clone().requires_grad_(recorded and inexact)

    return cases.map_tensors((sample.args, sample.kwargs), leaf)


def gradients(results, given):
    """Return the gradients of all results with respect to all leaves; None if there is nothing to do."""
    results = [t for t in cases.tensors_in(results) if t.requires_grad]
    given = [t for t in cases.tensors_in(given) if t.requires_grad]
    if not results or not given:
        return None
    ones = [tp.ones_like(t) for t in results]
    return tp.autograd.grad(results, given, ones, allow_unused=True)


def compare_compiled(record):
    """Return how many (results, gradients) were compared, and how many calls ran as graphs."""
    op = get_op(record.op)
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    samples = cases.samples_of(record, "cpu", dtype)
    making.seed(f"other {record.op}")
    others = record.samples(cases.Maker("cpu", dtype), dtype)
    counts = [0, 0, 0]
    for sample, other in zip(samples, others, strict=True):
        if any(isinstance(value, tp.Generator) for value in sample.kwargs.values()):
            continue
        for recorded in (False, True) if record.gradient else (False,):
            compiled = tp.compile(lambda args, kwargs: op.call(*args, **kwargs))
            for each in (sample, sample, other):
                given, again = leaves_of(each, recorded), leaves_of(each, recorded)
                with tp.set_grad_enabled(recorded):
                    tp.manual_seed(1)
                    try:
                        wanted = op.call(*given[0], **given[1])
                    except (RuntimeError, ValueError):  # other data may not fit
                        continue
                    tp.manual_seed(1)
                    made = compiled(list(again[0]), dict(again[1]))
                same(wanted, made)
                same(given, again)
                counts[0] += 1
                if recorded:
                    try:
                        slopes = gradients(wanted, given)
                    except NotImplementedError:  # of some forms there is no derivative
                        continue
                    if slopes is not None:
                        found = gradients(made, again)
                        assert [g is None for g in slopes] == [g is None for g in found]
                        same(
                            [g for g in slopes if g is not None],
                            [g for g in found if g is not None],
                        )
                        counts[1] += 1
            counts[2] += compiled.explain().calls
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS if FUZZ else 1))
def test_compiled_samples(part):
    found = [compare_compiled(record) for record in RECORDS[part::PARTS]]
    compared, differentiated, by_graph = (sum(column) for column in zip(*found, strict=True))
    assert compared > 800
    assert differentiated > 200
    assert by_graph > 0.5 * compared


# --- not all of it recorded ---------------------------------------------------------------------------


def partly_recorded(op):
    def program(args, kwargs):
        twice = [t * 2 for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
        with tp.no_grad():
            apart = op.call(*args, **kwargs)
            more = [t * 3 for t in twice]
        return apart, twice, more

    return program


@pytest.mark.parametrize("part", range(PARTS if FUZZ else 2))
def test_samples_that_are_not_recorded_among_what_is(part):
    count = by_graph = 0
    for record in [record for record in RECORDS if record.gradient][part::PARTS]:
        program = partly_recorded(get_op(record.op))
        for sample in cases.samples_of(record, "cpu", tp.float32)[:2]:
            compiled = tp.compile(program)
            for _ in range(3):
                given, again = leaves_of(sample, True), leaves_of(sample, True)
                tp.manual_seed(1)
                try:
                    wanted = program(*given)
                except (RuntimeError, ValueError):
                    break
                tp.manual_seed(1)
                made = compiled(list(again[0]), dict(again[1]))
                same(wanted, made)
                shown = [
                    [t.requires_grad for t in cases.tensors_in(results)]
                    for results in (wanted, made)
                ]
                assert shown[0] == shown[1], (record.op, sample)
                slopes, found = gradients(wanted, given), gradients(made, again)
                assert (slopes is None) == (found is None)
                if slopes is not None:
                    assert [g is None for g in slopes] == [g is None for g in found]
                    same(*([g for g in each if g is not None] for each in (slopes, found)))
                count += 1
            by_graph += compiled.explain().calls
    assert count > 100
    assert by_graph > 0.4 * count


DRAWING = {
    **{
        name: lambda x, name=name: getattr(F, name)(x[0] if "1d" in name else x, 0.5, True)
        for name in (
            "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
        )
    },
    "rrelu": lambda x: F.rrelu(x, training=True),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, hard=True),
    "bernoulli": lambda x: tp.bernoulli(x.sigmoid()),
    "normal": lambda x: tp.normal(x, 1.0),
    "rand_like": lambda x: tp.rand_like(x) * x,
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(x, 2, 2),
}  # fmt: skip


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
@pytest.mark.parametrize("inside", [tp.no_grad, tp.enable_grad])
def test_what_draws_is_recorded_or_not(draw, inside):
    def program(x):
        twice = x.relu() * 2
        with inside():
            apart = draw(twice)
        return apart, twice

    compiled = tp.compile(program)
    for number in range(3):
        given, again = (tp.randn(4, 3, 5, 5, requires_grad=True) for _ in range(2))
        again.data.copy_(given)
        tp.manual_seed(number)
        wanted = program(given)
        tp.manual_seed(number)
        made = compiled(again)
        same(wanted, made)
        assert [t.requires_grad for t in made] == [t.requires_grad for t in wanted]
        same(gradients(wanted, [given]), gradients(made, [again]))
