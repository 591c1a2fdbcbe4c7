"""Bad calls of every public function: no message shows what is inside, and the types are torch's."""

import os
import warnings
import zlib

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug.core.dispatch.op_registry import all_ops, get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

from . import bad_calls

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 40
# Where torch reads past its arrays, loops for ever or asks for all memory.
NOT_FOR_TORCH = ("linalg", "ldl", "lu_", "lstm", "gru", "rnn", "pool", "polynomial", "mvlgamma")
UNSAFE = ("huge", "over", "far", "minus")
# What torch's own Python says, and what depends on the order of its checks.
OF_PYTHON = (
    "to unpack", "Boolean value of Tensor", "tuple index", "Dimension specified", "Dimension out of range",
    "Overflow when", "failed to unpack", "accelerator", "positional argument", "must be real number",
)  # fmt: skip


def chosen(label, kind):
    return zlib.crc32(f"{label} {kind}".encode()) % EVERY == 0


def attempt(function, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return error
    return None


def labels(path, args):
    """Yield how an op can be called: as a function, as a method."""
    yield path
    if args and isinstance(args[0], tp.Tensor) and callable(getattr(tp.Tensor, path, None)):
        yield f"Tensor.{path}"


def loops(label, kind):
    """Return whether a call is right, and takes as many steps as its argument says."""
    return kind.endswith(("huge", "over")) and any(
        part in label for part in ("polynomial", "polygamma", "mvlgamma")
    )


def wrong_calls():
    for path, args, kwargs in bad_calls.ops():
        for label in labels(path, args):
            method = label.startswith("Tensor.")
            given = args[1:] if method else args
            for kind, wrong, named in bad_calls.wrong(given, kwargs):
                if chosen(label, kind) and not loops(label, kind):
                    yield label, kind, (args[0], *wrong) if method else wrong, named


def call(root, label, args, kwargs):
    name = label.removeprefix("Tensor.")
    if name != label:
        return attempt(getattr(args[0], name, None), args[1:], kwargs)
    return attempt(bad_calls.find(root, label), args, kwargs)


def test_messages():
    count, leaks = 0, []
    for label, kind, args, kwargs in wrong_calls():
        error = call(tp, label, args, kwargs)
        count += 1
        if error is None:
            continue
        leak = bad_calls.LEAKS.search(str(error))
        if leak or bad_calls.kind_of(error) is None:
            leaks.append((label, kind, type(error).__name__, str(error)[:200]))
    assert not leaks, leaks
    assert count > 500


def test_types():
    torch = pytest.importorskip("torch", reason="torch says which types of errors")
    from ..ops.test_against_torch import to_torch

    both, different = 0, []
    for label, kind, args, kwargs in wrong_calls():
        name = label.removeprefix("Tensor.")
        if any(part in label for part in NOT_FOR_TORCH) or any(part in kind for part in UNSAFE):
            continue
        if not callable(bad_calls.find(torch.Tensor if name != label else torch, name)):
            continue
        theirs = call(torch, label, to_torch(args), to_torch(kwargs))
        ours = call(tp, label, args, kwargs)
        if ours is None or theirs is None or bad_calls.kind_of(theirs) is None:
            continue
        both += 1
        if bad_calls.kind_of(ours) is not bad_calls.kind_of(theirs) and not any(
            text in str(theirs) for text in OF_PYTHON
        ):
            different.append((label, kind, repr(ours)[:120], repr(theirs)[:120]))
    assert both > 250
    assert len(different) <= 0.03 * both, "\n".join(map(str, different))


@pytest.mark.parametrize("place", range(4))
def test_every_op_refuses_what_is_no_tensor(place):
    """None, text, lists of numbers and others, in the place of a tensor that it declares."""
    wrong, count = [], 0
    for record in all_records():
        sample = cases.samples_of(record, "cpu", record.dtypes[0])[0]
        args = sample.args
        op = get_op(record.op)
        declared = list(op.signature.parameters.values())[place : place + 1]
        if place >= len(args) or not isinstance(args[place], tp.Tensor):
            continue
        if place and (not declared or declared[0].annotation != "Tensor"):
            continue
        for bad in (None, "text", [1.0, 2.0], bad_calls.Nothing()):
            count += 1
            error = attempt(op.call, (*args[:place], bad, *args[place + 1 :]), sample.kwargs)
            if type(error) is not TypeError or bad_calls.LEAKS.search(str(error)):
                wrong.append(f"{record.op}: {bad!r}: {error!r}"[:200])
    assert not wrong, "\n".join(wrong)
    assert count > (2000, 600, 100, 40)[place]


CONSTRUCTORS = [name for name in nn.__all__ if isinstance(getattr(tp.nn, name), type)]


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_module_is_named_by_its_own_name(name):
    made = getattr(tp.nn, name)
    error = attempt(made, (), {"nonsense": bad_calls.Nothing()})
    assert not str(error).startswith("_"), error
    if getattr(made, "forward", nn.Module.forward) is not nn.Module.forward:
        assert not made.forward.__qualname__.startswith("_")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tp.zeros(1 << 60), tp.OutOfMemoryError, r"^zeros\(\): can't allocate memory"),
        (lambda: tp.ones(1 << 70), TypeError, r"^ones\(\): a size is negative or too large, got \("),
        (lambda: nn.Embedding(3, 2)(tp.tensor([5])), IndexError, "index.* out of range"),
        (lambda: tp.add(1), TypeError, r"^add\(\) missing 1 required positional argument: 'other'$"),
        (lambda: tp.exp(), TypeError, r"^exp\(\) missing 1 required positional argument: 'input'$"),
        (lambda: tp.add(*[tp.ones(1)] * 4), TypeError, r"^add\(\) takes 2 positional arguments, but 4 "),
        (lambda: nn.Conv2d(), TypeError, r"^Conv2d.__init__\(\) missing 3 required"),
        (lambda: F.layer_norm(tp.ones(3), "a"), TypeError, r"'normalized_shape'.*tuple of ints, not str"),
        (lambda: F.nll_loss(tp.ones(1, 2) > 0, tp.tensor([0])), NotImplementedError, "for 'Bool'"),
    ],
)  # fmt: skip
def test_a_message(call, error, text):
    with pytest.raises(error, match=text) as caught:
        call()
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_out_of_memory_is_what_programs_catch():
    assert issubclass(tp.OutOfMemoryError, RuntimeError)
    assert issubclass(tp.OutOfMemoryError, MemoryError)


def test_what_a_function_among_the_arguments_raises_is_left_alone():
    def distance(x, y):
        raise KeyError("mine")

    loss = nn.TripletMarginWithDistanceLoss(distance_function=distance)
    with pytest.raises(KeyError, match="mine"):
        loss(tp.ones(2, 2), tp.ones(2, 2), tp.ones(2, 2))


def test_the_gradient_of_what_is_no_leaf_warns():
    x = tp.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="of a Tensor that is not a leaf") as caught:
        assert y.grad is None
    assert caught[0].filename == __file__
    y.retain_grad()
    assert y.grad is None
    assert x.grad is None
    assert y.detach().grad is None


@pytest.mark.parametrize("function", [F.binary_cross_entropy, F.binary_cross_entropy_with_logits])
def test_labels_that_are_ints(function):
    with pytest.raises(RuntimeError, match="Found dtype Long but expected Float"):
        function(tp.tensor([0.3, 0.4]), tp.tensor([0, 1]))


#: Also composites that backends have kernels for, and that do not say that they are elementwise.
OF_TWO = {"xlogy", "special_xlog1py", "logaddexp2"}
ELEMENTWISE = [op for op in all_ops() if op.pointwise or op.elementwise or op.name in OF_TWO]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_shapes_that_do_not_broadcast(op):
    """No backend's kernel says in its own words that shapes differ, of two operands or of three."""
    for count, dtype in ((2, tp.float32), (2, tp.float64), (3, tp.float32), (3, tp.float64)):
        operands = [tp.ones(size, dtype=dtype) for size in (3, 2, 3)[:count]]
        error = attempt(op.call, operands, {})
        if "broadcast" in str(error):  # others are about dtypes, or numbers
            assert type(error) is RuntimeError, repr(error)
            assert "must match the size of tensor" in str(error), error
