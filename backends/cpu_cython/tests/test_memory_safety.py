"""Kernels read memory where sizes and indices tell: every op with one of them wrong.

Of the samples of each op one tensor is longer or shorter along one dimension, two are longer along one of the
same size, indices point far away, or a whole number is another one. The call may raise or have a result,
whatever it is; a kernel that goes past the end of an array kills the child process that calls it, and fails
here.
"""

import itertools
import os

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry
from tensorplug.core.plugins import discovery, entry_points
from tensorplug.testing import cases, children, making
from tensorplug.testing.records import all_records

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
if not hasattr(os, "fork"):
    pytest.skip("a child is forked for each op", allow_module_level=True)

THOROUGH = bool(os.environ.get("TENSORPLUG_FUZZ"))
SAMPLES = 8 if THOROUGH else 2
DTYPES = (tp.float32, tp.int64, tp.bool, tp.complex64, tp.float16)
LONG = 3_000  # elements: past what an allocator rounds up to
PARTS = 16
SECONDS = 120  # of a child, which a loop over garbage might never leave
#: With a result for each pair of elements, or for more.
LEFT_OUT = ("cartesian_prod", "combinations")
#: What takes the place of a whole number, and of all indices.
NUMBERS = (-3, 0, LONG)
FAR = (10**7, -(10**7))
WHOLE = (tp.int64, tp.int32)


def changed(record, dtype):
    """Yield calls of an op in which one argument does not fit the others, and say which."""
    making.seed(f"{record.op} sizes")
    samples = record.samples(cases.Maker("cpu", dtype), dtype)
    for number, sample in enumerate(itertools.islice(samples, SAMPLES)):
        call = (sample.args, sample.kwargs)
        for place, tensor in enumerate(list(cases.tensors_in(call))):
            for dim, size in enumerate(tensor.shape):
                for length in (LONG, 1):
                    if tensor.numel() and size != length:
                        other = resized(tensor, dim, length)
                        told = f"sample {number}, tensor {place}, {length} along dimension {dim}"
                        yield told, with_other(call, place, other)
            for far in FAR if tensor.dtype in WHOLE else ():
                told = f"sample {number}, tensor {place}, all {far}"
                yield told, with_other(call, place, tp.full_like(tensor, far))
        pairs = with_pairs(call) if THOROUGH else ()
        for told, other in itertools.chain(pairs, with_numbers(call)):
            yield f"sample {number}, {told}", other


def with_pairs(call):
    """Yield a call with two tensors of one size longer: they still fit each other, but not a third."""
    places = [
        (place, tensor, dim)
        for place, tensor in enumerate(cases.tensors_in(call))
        for dim, size in enumerate(tensor.shape)
        if 1 < size < LONG and tensor.numel()
    ]
    for (one, first, dim), (two, second, other) in itertools.combinations(places, 2):
        if one != two and first.shape[dim] == second.shape[other]:
            longer = with_other(call, one, resized(first, dim, LONG))
            told = f"tensors {one} and {two}, {LONG} along dimensions {dim} and {other}"
            yield told, with_other(longer, two, resized(second, other, LONG))


def resized(tensor, dim, length):
    if length < tensor.shape[dim]:
        return tensor.narrow(dim, 0, length).contiguous()
    times = [1] * tensor.ndim
    times[dim] = -(-length // tensor.shape[dim])
    return tensor.repeat(times)


def with_other(call, place, other):
    places = itertools.count()
    return cases.map_tensors(call, lambda tensor: other if next(places) == place else tensor)


def with_numbers(call):
    """Yield a call with each whole number, or those of each tuple, replaced."""
    args, kwargs = call
    for name, value in [*enumerate(args), *kwargs.items()]:
        for wrong in NUMBERS:
            if type(value) is int:
                other = wrong
            elif type(value) in (tuple, list) and value and all(type(n) is int for n in value):
                other = type(value)([wrong] * len(value))
            else:
                continue
            told = f"argument {name} {other}"
            if isinstance(name, int):
                yield told, ((*args[:name], other, *args[name + 1 :]), kwargs)
            else:
                yield told, (args, {**kwargs, name: other})


def called(op, record, tell):
    """Make all calls of an op, and tell what is called before each."""
    dtypes = [dtype for dtype in DTYPES if dtype in record.dtypes]
    for dtype in dtypes if THOROUGH else dtypes[:1]:
        for text, (args, kwargs) in changed(record, dtype):
            tell(f"{dtype}, {text}")
            try:
                op.call(*args, **kwargs)
            except Exception:
                continue


def died_of(op, record):
    """Return how a child ended that made the calls, and the last of them; None if it came through."""
    status, told = children.in_child(lambda tell: called(op, record, tell), SECONDS)
    last = told[-1] if told else "before any call"
    return f"{op.name}: exit status {status}, {last}" if status else None


@pytest.mark.parametrize("part", range(PARTS))
def test_what_does_not_fit_ends_no_process(part):
    discovery.load_device(entry_points.EXTENSION)
    ended = [
        died_of(op_registry.get_op(record.op), record)
        for record in list(all_records())[part::PARTS]
        if record.op not in LEFT_OUT
    ]
    assert len(ended) > 20
    assert not any(ended), "\n".join(filter(None, ended))
