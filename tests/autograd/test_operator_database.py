"""torch's own database of operators: gradients, their gradients, tangents, and vmap beside a loop.

Every 40th operator wholly, of the others values and gradients of one sample; all of them wholly where
TENSORPLUG_FUZZ is set.
"""

import itertools
import os
import warnings

import numpy as np
import pytest
from benchmarks import database

import tensorplug as tp

torch = pytest.importorskip("torch", reason="values are compared with torch's")

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 40
SAMPLES = 4
LARGEST = 2000  # elements of a sample that stands for all
DRAWN = (
    "rand", "dropout", "bernoulli", "normal", "multinomial", "exponential", "cauchy", "geometric", "uniform",
    "rrelu", "empty", "fractional",
)  # fmt: skip
# Results that are one of many: signs, phases, bases.
AMBIGUOUS = (
    "linalg.svd", "svd", "linalg.eig", "linalg.qr", "qr", "lu", "linalg.lu", "geqrf", "linalg.householder",
    "ormqr", "pca", "linalg.ldl", "cholesky_ex",
)  # fmt: skip
CALLS = "a call that only torch's test takes"
#: What is left out of the comparison with torch, and why; "" stands for all of it.
KNOWN = {
    "as_strided": ("", "of memory beyond the sample's own, which vmap and a copy do not have"),
    "as_strided_copy": ("vmap", "a loop's samples have offsets"),
    "as_strided_scatter": ("gradient", "torch's does not drop what is written over"),
    "bfloat16": ("", "NumPy has no such numbers"),
    "chalf": ("", "NumPy has no such numbers"),
    "cholesky": ("gradient tangent", "of upper factors of matrices that are not Hermitian: a convention"),
    "linalg.cholesky": ("gradient tangent", "as cholesky"),
    "cholesky_inverse": ("gradient tangent", "torch's has elements of the triangle that is not read"),
    "cholesky_solve": ("gradient tangent", "as cholesky_inverse"),
    "linalg.cholesky_ex": ("gradient tangent", "as cholesky"),
    "linalg.lstsq": ("required", "singular values"),
    "linalg.norm": ("required second", "constant where it counts; at zero, where torch has NaN"),
    "logcumsumexp": ("value tangent", "of complex numbers, up to a period; torch's tangents are NaN"),
    "masked.logaddexp": ("second", "of masked elements, where torch has NaN"),
    "nn.functional.batch_norm": ("", CALLS),
    "nn.functional.ctc_loss": ("gradient", "see the page of deviations"),
    "nn.functional.linear_cross_entropy": ("", "options of a prototype"),
    "nn.functional.max_unpool1d": ("tangent", "of places that are written twice"),
    "nn.functional.max_unpool2d": ("tangent", "as max_unpool1d"),
    "nn.functional.max_unpool3d": ("tangent", "as max_unpool1d"),
    "nn.functional.multi_head_attention_forward": ("", "some samples drop out"),
    "nn.functional.scaled_dot_product_attention": ("", "some samples drop out"),
    "nn.functional.triplet_margin_with_distance_loss": ("", "of a module of torch's"),
    "norm": ("required", "torch says None for zeros"),
    "istft": ("required second", "torch says None for zeros"),
    "scatter_reduce": ("tangent", "torch's of include_self=False is not that of finite differences"),
    "special.bessel_j0": ("value", "torch's has seven digits"),
    "special.bessel_y1": ("value", "torch's has seven digits"),
    "triangular_solve": ("tangent", "torch's is not that of finite differences"),
}  # fmt: skip

OPERATORS = [
    operator
    for operator in database.operators(tp, torch)[0]
    if not any(word in operator.name for word in DRAWN)
]
WHOLLY = {operator.label for operator in OPERATORS[::EVERY]}


def flat(value, library):
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(item, library)]
    return []


def numbers(tensor):
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().clone().resolve_conj().resolve_neg().numpy(force=True)
    return tensor.detach().numpy()


def assert_alike(what, ours, theirs, tolerance):
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            numbers(found), numbers(expected), rtol=tolerance, atol=tolerance, err_msg=what
        )


class Sample:
    """A sample of torch's with our arguments; what is one tensor there is one here."""

    def __init__(self, operator, sample):
        self.operator = operator
        self.known = {}
        self.given = ((sample.input, *sample.args), dict(sample.kwargs))
        self.own = database.converted(self.given, self.ours)
        self.leaves = [t for t in database.tensors(self.given, torch) if t.requires_grad]
        self.own_leaves = [self.ours(t) for t in self.leaves]

    def ours(self, value):
        if not isinstance(value, torch.Tensor):
            return database.to_ours(value, tp, torch)
        if (
            id(value) not in self.known
        ):  # beside the value, whose id is its own as long as it is there
            self.known[id(value)] = value, database.to_ours(value, tp, torch)
        return self.known[id(value)][1]

    def theirs_at(self, *leaves):
        return self._called(self.operator.theirs, self.given, self.leaves, leaves, torch)

    def ours_at(self, *leaves):
        return self._called(self.operator.ours, self.own, self.own_leaves, leaves, tp)

    def _called(self, function, given, places, leaves, library):
        there = {id(place): leaf for place, leaf in zip(places, leaves, strict=True)}
        args, kwargs = database.converted(given, lambda value: there.get(id(value), value))
        results = flat(function(*args, **kwargs), library)
        return tuple([x for x in results if x.is_floating_point() or x.is_complex()])


def samples(operator):
    for dtype in (torch.float64, torch.complex128):
        if dtype in operator.info.supported_dtypes("cpu"):
            grads = operator.info.supports_autograd
            drawn = operator.info.sample_inputs("cpu", dtype, requires_grad=grads)
            if (
                operator.label not in WHOLLY
            ):  # that of most leaves; the first are often without dimensions
                some = [Sample(operator, sample) for sample in itertools.islice(drawn, 8)]
                one = max(reversed(some), key=lambda sample: len(sample.leaves))
                if sum(t.numel() for t in database.tensors(one.given, torch)) < LARGEST:
                    yield one
                return
            every = list(drawn)
            for sample in every[:: max(1, -(-len(every) // SAMPLES))]:
                yield Sample(operator, sample)


def of_torch(function, *args, **kwargs):
    """Return what torch makes of a call, or None where it refuses."""
    try:
        return function(*args, **kwargs)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.label)
def test_an_operator_is_differentiated_and_batched_as_torchs(operator):
    left_out, reason = KNOWN.get(operator.name, (None, ""))
    if left_out == "":
        pytest.skip(reason)
    left_out = left_out or ""
    if operator.name.startswith(AMBIGUOUS):
        left_out += " value gradient tangent vmap"
    if operator.label not in WHOLLY:
        left_out += " second tangent vmap"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples(operator):
            compare(sample, left_out)


def compare(sample, left_out):
    leaves, own_leaves = sample.leaves, sample.own_leaves
    expected = of_torch(sample.theirs_at, *leaves)
    if expected is None:
        return
    found = sample.ours_at(*own_leaves)
    if "value" not in left_out:
        assert_alike("values", found, expected, 1e-7)
    if "required" not in left_out:
        assert [x.requires_grad for x in found] == [x.requires_grad for x in expected]
    if leaves and "gradient" not in left_out:
        compare_gradients(sample, found, expected, left_out)
    if not leaves:
        return
    if "tangent" not in left_out:
        points, directions = [t.detach() for t in leaves], [torch.randn_like(t) for t in leaves]
        theirs = of_torch(torch.func.jvp, sample.theirs_at, tuple(points), tuple(directions))
        if theirs is not None:
            own_points = tuple([t.detach() for t in own_leaves])
            ours = tp.func.jvp(sample.ours_at, own_points, tuple(map(sample.ours, directions)))
            assert_alike("tangents", ours[1], theirs[1], 1e-5)
    if "vmap" not in left_out and all(t.ndim < 5 for t in own_leaves):
        compare_batches(sample)


def compare_gradients(sample, found, expected, left_out):
    pairs = [
        (a, b) for a, b in zip(found, expected, strict=True) if a.requires_grad and b.requires_grad
    ]
    if not pairs:
        return
    results, outputs = zip(*pairs, strict=True)
    weights = [torch.randn_like(output) for output in outputs]
    options = {"allow_unused": True, "create_graph": True}
    first = of_torch(torch.autograd.grad, outputs, sample.leaves, weights, **options)
    if first is None:
        return
    own = tp.autograd.grad(results, sample.own_leaves, [sample.ours(w) for w in weights], **options)
    if "required" not in left_out:
        assert [g is None for g in own] == [g is None for g in first]
    both = [(a, b) for a, b in zip(own, first, strict=True) if a is not None and b is not None]
    assert_alike("gradients", [a for a, _ in both], [b for _, b in both], 1e-6)
    again = [(a, b) for a, b in both if b.requires_grad]
    if not again or "second" in left_out:
        return
    weights = [torch.randn_like(b) for _, b in again]
    second = of_torch(
        torch.autograd.grad, [b for _, b in again], sample.leaves, weights, allow_unused=True
    )
    if second is None:
        return
    # torch has a gradient of zeros where ours is known to be constant.
    varying = [
        (a, sample.ours(w)) for (a, _), w in zip(again, weights, strict=True) if a.requires_grad
    ]
    own_second = [None] * len(second)
    if varying:
        gradients, directions = zip(*varying, strict=True)
        own_second = tp.autograd.grad(gradients, sample.own_leaves, directions, allow_unused=True)
    for ours, theirs, leaf in zip(own_second, second, sample.leaves, strict=True):
        zeros = torch.zeros_like(leaf)
        assert_alike(
            "second derivatives",
            [sample.ours(zeros) if ours is None else ours],
            [zeros if theirs is None else theirs],
            1e-5,
        )


def compare_batches(sample):
    stacked = [
        tp.stack([t.detach(), t.detach() * 0.9, t.detach() * 1.1]) for t in sample.own_leaves
    ]
    try:
        alone = [sample.ours_at(*[t[n] for t in stacked]) for n in range(3)]
        expected = [tp.stack(results) for results in zip(*alone, strict=True)]
    except (RuntimeError, ValueError):  # refused of other values, or results of different shapes
        return
    try:
        found = tp.func.vmap(sample.ours_at)(*stacked)
    except RuntimeError:
        theirs = [
            torch.stack([t.detach(), t.detach() * 0.9, t.detach() * 1.1]) for t in sample.leaves
        ]
        assert of_torch(torch.func.vmap(sample.theirs_at), *theirs) is None
    else:
        assert_alike("vmap", found, expected, 1e-7)
