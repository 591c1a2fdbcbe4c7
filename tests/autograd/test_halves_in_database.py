"""torch's own database of operators in half precision: values and gradients as right as torch's.

They are held to torch's in float64, of the same arguments. Every 20th operator; all of them where
TENSORPLUG_FUZZ is set.
"""

import os
import warnings

import numpy as np
import pytest
from benchmarks import database
from tests.autograd import test_operator_database as float64

import tensorplug as tp
from tensorplug.nn import functional as F

torch = pytest.importorskip("torch", reason="values are compared with torch's")

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 20
SAMPLES = 8
HALVES = {torch.bfloat16: (2.0**-7, 1e-38, 3.38e38), torch.float16: (2.0**-10, 6e-8, 65504.0)}

FROM_NUMBERS = "made of numbers: nothing tells what is exact"
BIAS = "rounded before the bias is added, as torch's where oneDNN has no kernel for the processor"
TIES = "of equal elements any may be the first"
STEPS = "the formula's steps are rounded, as torch's, before a sum over what was broadcast"
#: What is left out, and why; of it a value, a gradient, or both.
KNOWN = {
    "addcdiv": ("gradient", STEPS),
    "addr": ("gradient", STEPS),
    "arange": ("value", FROM_NUMBERS),
    "as_strided_scatter": ("gradient", "torch's does not drop what is written over"),
    "atan2": ("gradient", STEPS),
    "gradient": ("gradient", STEPS),
    "hypot": ("gradient", STEPS),
    "linspace": ("value", FROM_NUMBERS),
    "logaddexp": ("gradient", STEPS),
    "logspace": ("value", FROM_NUMBERS),
    "matmul": ("gradient", STEPS),
    "mode": ("gradient", TIES),
    "msort": ("gradient", TIES),
    "nn.functional.conv_transpose1d": ("value", BIAS),
    "nn.functional.conv_transpose2d": ("value", BIAS),
    "nn.functional.conv_transpose3d": ("value", BIAS),
    "nn.functional.linear_cross_entropy": ("value gradient", "options of a prototype"),
    "nn.functional.multi_head_attention_forward": ("value gradient", "some samples drop out"),
    "nn.functional.pad": ("gradient", "dimension after dimension, each rounded"),
    "nn.functional.rms_norm": ("gradient", "of one element, where it is zero"),
    "nn.functional.scaled_dot_product_attention": ("gradient", "made of the result, which is rounded"),
    "nn.functional.triplet_margin_with_distance_loss": ("value gradient", "of a module of torch's"),
    "renorm": ("gradient", "its scale is rounded, and the product, as torch rounds them"),
    "sort": ("gradient", TIES),
    "special.ndtr": ("value", "torch's vanishes far below zero"),
    "special.xlog1py": ("gradient", STEPS),
    "topk": ("gradient", TIES),
}  # fmt: skip

OPERATORS = [
    operator
    for operator in database.operators(tp, torch)[0]
    if not any(word in operator.name for word in float64.DRAWN)
    and not operator.name.startswith(float64.AMBIGUOUS)
][::EVERY]


def distance(found, exact, half):
    """Return how far numbers are from exact ones, in units of the last place, of small ones the largest's."""
    place, tiny, largest = HALVES[half]
    found, exact = (float64.numbers(x.detach().double()) for x in (found, exact))
    assert found.shape == exact.shape
    within = np.isfinite(exact) & (np.abs(exact) <= largest)
    if not within.any():
        return 0.0
    size = np.abs(exact[within])
    units = np.abs(found[within] - exact[within]) / (
        place * np.maximum(size, 1e-3 * size.max()) + tiny
    )
    return np.where(np.isnan(units), np.inf, units).max()


class Exact:
    """A sample once more, with arguments of float64."""

    def __init__(self, sample):
        self.known = {}
        args, kwargs = database.converted(sample.given, self.wide)
        self.leaves = [self.wide(leaf) for leaf in sample.leaves]
        results = float64.of_torch(sample.operator.theirs, *args, **kwargs)
        self.results = None if results is None else float64.flat(results, torch)

    def wide(self, value):
        if not isinstance(value, torch.Tensor) or value.dtype not in HALVES:
            return value
        if id(value) not in self.known:
            wide = value.detach().double().requires_grad_(value.requires_grad)
            self.known[id(value)] = value, wide
        return self.known[id(value)][1]


def compared(sample, half):
    """Yield what is compared, our distance from what is exact, and torch's."""
    exact, theirs = Exact(sample), float64.of_torch(sample.theirs_at, *sample.leaves)
    if theirs is None or exact.results is None:
        return
    right = [x for x in exact.results if x.is_floating_point() or x.is_complex()]
    ours = sample.ours_at(*sample.own_leaves)
    results = [
        each
        for each in zip(ours, theirs, right, strict=True)
        if each[1].dtype is half and each[2].is_floating_point()
    ]
    for a, b, c in results:
        yield "value", distance(a, c, half), distance(b, c, half)
    outputs = [each for each in results if all([x.requires_grad for x in each])]
    if not outputs or not sample.leaves:
        return
    weights = [torch.randn(b.shape).to(b.dtype) for _, b, _ in outputs]
    many = {"allow_unused": True}
    second = float64.of_torch(
        torch.autograd.grad, [b for _, b, _ in outputs], sample.leaves, weights, **many
    )
    if second is None:
        return
    wide = [weight.double() for weight in weights]
    third = torch.autograd.grad([c for *_, c in outputs], exact.leaves, wide, **many)
    first = tp.autograd.grad(
        [a for a, *_ in outputs], sample.own_leaves, [sample.ours(w) for w in weights], **many
    )
    for a, b, c in zip(first, second, third, strict=True):
        if a is not None and b is not None and c is not None and b.dtype is half:
            yield "gradient", distance(a, c, half), distance(b, c, half)


def samples(operator, half):
    if half not in operator.info.supported_dtypes("cpu"):
        return
    grads = operator.info.supports_autograd
    grads = grads and half in operator.info.supported_backward_dtypes("cpu")
    every = list(operator.info.sample_inputs("cpu", half, requires_grad=grads))
    for sample in every[:: max(1, -(-len(every) // SAMPLES))]:
        yield float64.Sample(operator, sample)  # made late: some write to what others have, too


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.label)
def test_an_operator_is_as_near_to_what_is_exact_as_torchs(operator, half):
    left_out, _ = KNOWN.get(operator.name, ("", ""))
    if left_out == "value gradient":
        pytest.skip(KNOWN[operator.name][1])
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, sample in enumerate(samples(operator, half)):
            for what, ours, theirs in compared(sample, half):
                if what not in left_out:
                    assert ours <= max(1.0, 3 * theirs), (what, number, ours, theirs, sample.given)


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_a_fault_is_found(half):
    """A body that is rounded after each of its steps."""
    x = torch.linspace(-4, 4, 200).to(half)
    given = tp.tensor(x.float().numpy()).to(getattr(tp, str(half).removeprefix("torch.")))
    exact = torch.nn.functional.gelu(x.double())
    by_steps = given * 0.5 * (1 + (given * 0.5**0.5).erf())
    assert distance(F.gelu(given), exact, half) < 1
    assert distance(by_steps, exact, half) > 3
