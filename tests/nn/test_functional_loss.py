"""Losses: values and gradients against torch's, hand-worked values, bad input."""

import itertools
import math

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core.dispatch.op_registry import get_op

REDUCTIONS = ["mean", "sum", "none"]


def numbers(*shape, low=-2.0, high=2.0, grad=True):
    import torch

    made = torch.rand(*shape, dtype=torch.float64) * (high - low) + low
    return made.requires_grad_(grad)


def classes(*shape, count, ignored=False):
    import torch

    made = torch.randint(0, count, shape)
    if ignored:
        made.view(-1)[0] = -100
    return made


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("shape", [(4,), (5, 4), (5, 4, 3), (2, 4, 3, 2)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_classes(compare, shape, weighted, ignored, reduction, smoothing):
    target_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = classes(*target_shape, count=4, ignored=ignored and len(shape) > 1)
    weight = numbers(4, low=0.5, grad=False) if weighted else None
    compare.functional(
        "cross_entropy", numbers(*shape), target, weight, reduction=reduction,
        label_smoothing=smoothing,
    )  # fmt: skip
    logs = numbers(*shape)
    compare.functional("nll_loss", logs, target, weight, reduction=reduction)
    if not ignored:
        compare.functional("nll_loss", logs, target, weight, ignore_index=1, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4,), (5, 4), (2, 4, 3)])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_of_probabilities(compare, shape, reduction, smoothing):
    target = numbers(*shape, low=0.0, high=1.0)
    for weight in (None, numbers(4, low=0.5, grad=False)):
        compare.functional(
            "cross_entropy", numbers(*shape), target, weight, reduction=reduction,
            label_smoothing=smoothing,
        )  # fmt: skip


def test_linear_cross_entropy(compare):
    target = classes(5, count=4)
    bias = {"linear_bias": numbers(4), "label_smoothing": 0.1}
    compare.functional("linear_cross_entropy", numbers(5, 3), numbers(4, 3), target, **bias)


def test_everything_ignored_is_nan():
    target = tp.full((2,), -100)
    assert math.isnan(F.cross_entropy(tp.zeros(2, 3), target).item())
    assert F.cross_entropy(tp.zeros(2, 3), target, reduction="sum").item() == 0.0


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 2), (40, 3, 5)])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16])
def test_the_gradient_of_a_mean_without_weight_is_nan(name, shape, dtype):
    """As the mean is; what is ignored gets no gradient."""
    x = tp.zeros(shape, dtype=dtype, requires_grad=True)
    target = tp.zeros((shape[0], *shape[2:]), dtype=tp.int64)
    target[0] = 1
    for ignored in (1, -100):
        x.grad = None
        loss = getattr(F, name)(x, target, tp.tensor([0, 0, 1], dtype=dtype), ignore_index=ignored)
        loss.backward()
        named = x.grad.gather(1, target.unsqueeze(1)).squeeze(1)
        assert loss.isnan()
        assert named.isnan().equal(target != ignored)
        assert ((target != ignored).unsqueeze(1) | (x.grad == 0)).all()
    x.grad = None
    getattr(F, name)(x, target * 0 - 100).backward()
    assert x.grad.equal(tp.zeros_like(x.grad))


def test_an_infinite_loss_that_is_ignored():
    logs = tp.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    assert F.nll_loss(logs, tp.tensor([0, 0]), ignore_index=0, reduction="sum").item() == 0.0


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mse_loss", {}),
        ("l1_loss", {}),
        ("smooth_l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.3}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {}),
        ("huber_loss", {"delta": 0.4}),
        ("soft_margin_loss", {}),
        ("hinge_embedding_loss", {}),
        ("poisson_nll_loss", {}),
        ("multilabel_soft_margin_loss", {}),
    ],
)
def test_pairs(compare, name, options, reduction):
    compare.functional(
        name, numbers(4, 3), numbers(4, 3, grad=not name.endswith("margin_loss")),
        reduction=reduction, **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weighted_pairs(compare, name, reduction):
    compare.functional(
        name, numbers(4, 3), numbers(4, 3), weight=numbers(4, 3, low=0.1, grad=False),
        reduction=reduction,
    )  # fmt: skip


def test_broadcast_pairs_warn(compare):
    compare.functional("mse_loss", numbers(4, 3), numbers(3))
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(tp.zeros(4, 3), tp.zeros(3))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy(compare, reduction, weighted):
    weight = numbers(4, 3, low=0.1, grad=False) if weighted else None
    compare.functional(
        "binary_cross_entropy", numbers(4, 3, low=0.01, high=0.99), numbers(4, 3, low=0.0, high=1.0),
        weight, reduction=reduction,
    )  # fmt: skip
    compare.functional(
        "binary_cross_entropy_with_logits", numbers(4, 3, low=-9.0, high=9.0),
        numbers(4, 3, low=0.0, high=1.0, grad=False), weight, reduction=reduction,
        pos_weight=numbers(3, low=0.5, grad=False),
    )  # fmt: skip
    compare.functional(
        "binary_cross_entropy_with_logits", numbers(4, 3), numbers(4, 3, low=0.0, high=1.0), weight,
        reduction=reduction,
    )  # fmt: skip


def test_binary_cross_entropy_at_the_ends(compare):
    import torch

    input = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    # torch keeps its 1e-12 in single precision.
    compare.functional("binary_cross_entropy", input, target, rtol=1e-6)


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(compare, reduction, log_target):
    target = numbers(4, 3, low=-3.0, high=-0.1) if log_target else numbers(4, 3, low=0.0, high=1.0)
    compare.functional("kl_div", numbers(4, 3), target, reduction=reduction, log_target=log_target)


@pytest.mark.parametrize(("log_input", "full"), [*itertools.product([True, False], repeat=2)])
def test_poisson(compare, log_input, full):
    compare.functional(
        "poisson_nll_loss",
        numbers(4, 3, low=0.1),
        numbers(4, 3, low=0.1, high=5.0),
        log_input,
        full,
    )


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (4, 1), (4,)])
def test_gaussian(compare, full, shape):
    import torch

    var = numbers(*shape, low=0.0)
    compare.functional("gaussian_nll_loss", numbers(4, 3), numbers(4, 3), var, full=full)
    compare.functional("gaussian_nll_loss", numbers(4, 3), numbers(4, 3), 0.5, full=full)
    zero = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    compare.functional("gaussian_nll_loss", numbers(4, 3), numbers(4, 3), zero)


def signs(*shape):
    import torch

    return torch.randint(0, 2, shape).double() * 2 - 1


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins(compare, reduction):
    import torch

    compare.functional(
        "margin_ranking_loss", numbers(5), numbers(5), signs(5), margin=0.3, reduction=reduction
    )
    compare.functional(
        "hinge_embedding_loss", numbers(5), signs(5), margin=0.7, reduction=reduction
    )
    compare.functional(
        "cosine_embedding_loss", numbers(5, 4), numbers(5, 4), signs(5), margin=0.1,
        reduction=reduction,
    )  # fmt: skip
    compare.functional(
        "cosine_embedding_loss", numbers(4), numbers(4), signs(1).reshape(()), reduction=reduction
    )
    for p, weight in ((1, None), (2, numbers(4, low=0.1, grad=False))):
        compare.functional(
            "multi_margin_loss", numbers(5, 4), classes(5, count=4), p, 0.8, weight,
            reduction=reduction,
        )  # fmt: skip
    compare.functional("multi_margin_loss", numbers(4), torch.tensor(2), reduction=reduction)
    target = torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]])
    compare.functional("multilabel_margin_loss", numbers(3, 4), target, reduction=reduction)
    compare.functional("multilabel_margin_loss", numbers(4), target[0], reduction=reduction)
    for shape, other in itertools.product(((), (1,)), repeat=2):
        zero = torch.zeros(other, dtype=torch.int64)
        compare.functional(
            "multilabel_margin_loss",
            numbers(1).detach().reshape(shape).requires_grad_(),
            zero,
            reduction=reduction,
        )
    for p, swap in ((2.0, False), (1.0, True), (3.0, False)):
        compare.functional(
            "triplet_margin_loss", numbers(5, 4), numbers(5, 4), numbers(5, 4), 0.9, p, swap=swap,
            reduction=reduction,
        )  # fmt: skip
    compare.functional(
        "triplet_margin_with_distance_loss", numbers(5, 4), numbers(5, 4), numbers(5, 4),
        distance_function=lambda a, b: ((a - b) ** 2).sum(-1), reduction=reduction,
    )  # fmt: skip


def test_soft_margin_does_not_overflow():
    loss = F.soft_margin_loss(tp.tensor([1000.0]), tp.tensor([-1.0]))
    assert loss.item() == 1000.0


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity(compare, dim):
    compare.functional("cosine_similarity", numbers(3, 4, 5), numbers(3, 4, 5), dim)
    compare.functional("cosine_similarity", numbers(3, 4, 5), numbers(1, 4, 5), dim)
    tiny = numbers(3, 4, low=-1e-9, high=1e-9), numbers(3, 4, low=-1e-9, high=1e-9)
    compare.functional("cosine_similarity", *tiny, 1)


def test_cosine_similarity_refuses_a_negative_eps():
    with pytest.raises(RuntimeError, match="eps must be non-negative, got: -1"):
        F.cosine_similarity(tp.ones(2, 3), tp.ones(2, 3), eps=-1.0)


def test_cosine_similarity_of_integers():
    x = tp.tensor([3, 4])
    found = F.cosine_similarity(x.to(tp.int8), x.float(), dim=0)
    assert found.dtype is tp.float32
    assert found.item() == pytest.approx(1.0)
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
        F.cosine_similarity(x, x, dim=0)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_distances(compare, p):
    compare.functional("pairwise_distance", numbers(5, 4), numbers(5, 4), p)
    compare.functional("pairwise_distance", numbers(5, 4), numbers(4), p, keepdim=True)
    compare.functional("pdist", numbers(5, 4), p)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("flat", [False, True])
def test_ctc(compare, reduction, flat):
    import torch

    logits = torch.randn(12, 4, 6, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([3, 5, 0, 2])
    targets = torch.randint(1, 6, (4, 5))
    targets[1] = torch.tensor([2, 2, 3, 3, 3])  # repeated labels need a blank between
    if flat:
        targets = torch.cat([targets[i, :n] for i, n in enumerate(lengths)])
    inputs = torch.tensor([12, 10, 7, 9])

    def loss(library):
        def call(logits, targets, inputs, lengths):
            logs = library.log_softmax(logits, 2)
            return library.ctc_loss(logs, targets, inputs, lengths, reduction=reduction)

        return call

    compare(loss(F), loss(torch.nn.functional), logits, targets, inputs, lengths)


def test_ctc_without_batch_and_with_another_blank(compare):
    import torch

    logits = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)

    def loss(library):
        def call(logits, targets):
            logs = library.log_softmax(logits, 1)
            args = (
                (tp if library is F else torch).tensor(7),
                (tp if library is F else torch).tensor(3),
            )
            return library.ctc_loss(logs, targets, *args, blank=4)

        return call

    compare(loss(F), loss(torch.nn.functional), logits, torch.tensor([1, 1, 2]))


def test_impossible_ctc():
    logs = tp.zeros(2, 1, 3).log_softmax(2).requires_grad_()
    targets = tp.tensor([[1, 1, 2]])
    assert F.ctc_loss(logs, targets, [2], [3]).item() == math.inf
    loss = F.ctc_loss(logs, targets, [2], [3], zero_infinity=True)
    loss.backward()
    assert loss.item() == 0.0
    assert logs.grad.abs().sum().item() == 0.0


def test_known_values():
    scores = tp.tensor([[0.0, 0.0], [0.0, math.log(3.0)]], dtype=tp.float64)
    expected = (math.log(2) + math.log(4 / 3)) / 2
    assert F.cross_entropy(scores, tp.tensor([0, 1])).item() == pytest.approx(expected)
    assert F.mse_loss(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0])).item() == 2.0
    assert F.huber_loss(tp.tensor([0.0]), tp.tensor([3.0])).item() == 2.5
    half = tp.tensor([0.5], dtype=tp.float64)
    assert F.binary_cross_entropy(half, half).item() == pytest.approx(math.log(2))
    # Two steps, one label: the paths "-a", "a-" and "aa" of four equally likely ones each.
    logs = tp.full((2, 1, 2), math.log(0.5), dtype=tp.float64)
    assert F.ctc_loss(logs, tp.tensor([[1]]), [2], [1]).item() == pytest.approx(-math.log(0.75))


def test_legacy_flags():
    a, b = tp.tensor([1.0, 2.0]), tp.tensor([0.0, 0.0])
    assert F.mse_loss(a, b, size_average=False).item() == 5.0
    assert F.mse_loss(a, b, reduce=False).tolist() == [1.0, 4.0]
    assert F.mse_loss(a, b, size_average=True).item() == 2.5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.cross_entropy(x, tp.tensor([0, 2])),
        lambda x: F.cross_entropy(x, tp.tensor([0, 2]), label_smoothing=0.2),
        lambda x: F.nll_loss(x, tp.tensor([0, -100]), tp.tensor([1.0, 2.0, 3.0], dtype=tp.float64)),
        lambda x: F.binary_cross_entropy(x.sigmoid(), tp.full((2, 3), 0.3, dtype=tp.float64)),
        lambda x: F.ctc_loss(x.unsqueeze(1), tp.tensor([[1]]), [2], [1]),
    ],
)
def test_finite_differences(function):
    tp.manual_seed(0)
    input = tp.randn(2, 3, dtype=tp.float64).requires_grad_()
    assert tp.autograd.gradcheck(function, (input,))
    assert tp.autograd.gradgradcheck(function, (input,))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 3])), IndexError),
        (lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, -1])), IndexError),
        (lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 1, 2])), ValueError),
        (lambda: F.cross_entropy(tp.zeros(2, 3, 4), tp.zeros(2, 5, dtype=tp.int64)), RuntimeError),
        (lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0.0, 1.0])), RuntimeError),
        (lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 1]), tp.ones(2)), RuntimeError),
        (lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 1]), reduction="x"), ValueError),
        (
            lambda: F.cross_entropy(tp.zeros(2, 3), tp.tensor([0, 1]), label_smoothing=2),
            RuntimeError,
        ),
        (lambda: F.mse_loss(1.0, tp.zeros(1)), TypeError),
        (lambda: F.mse_loss(tp.zeros(1), tp.zeros(1), reduction="x"), ValueError),
        (lambda: F.huber_loss(tp.zeros(1), tp.zeros(1), delta=0.0), RuntimeError),
        (lambda: F.binary_cross_entropy(tp.tensor([2.0]), tp.tensor([1.0])), RuntimeError),
        (lambda: F.binary_cross_entropy(tp.zeros(2), tp.zeros(3)), ValueError),
        (lambda: F.binary_cross_entropy_with_logits(tp.zeros(2), tp.zeros(3)), ValueError),
        (lambda: F.gaussian_nll_loss(tp.zeros(2), tp.zeros(2), -1.0), ValueError),
        (lambda: F.gaussian_nll_loss(tp.zeros(2, 3), tp.zeros(2, 3), tp.ones(5)), ValueError),
        (lambda: F.triplet_margin_loss(*[tp.zeros(2, 3)] * 3, margin=0.0), ValueError),
        (lambda: F.multi_margin_loss(tp.zeros(2, 3), tp.tensor([0, 1]), p=3), ValueError),
        (
            lambda: F.multilabel_margin_loss(tp.zeros(2, 3), tp.zeros(2, dtype=tp.int64)),
            RuntimeError,
        ),
        (lambda: F.margin_ranking_loss(tp.zeros(2), tp.zeros(2, 1), tp.zeros(2)), RuntimeError),
        (lambda: F.ctc_loss(tp.zeros(2, 1, 3), tp.tensor([[1]]), [3], [1]), RuntimeError),
        (lambda: F.ctc_loss(tp.zeros(2, 1, 3), tp.tensor([[1]]), [2], [1], blank=3), RuntimeError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("target", [3, -1])
@pytest.mark.parametrize("weight", [None, tp.ones(3)], ids=["plain", "weighted"])
def test_a_class_out_of_range_without_a_fused_kernel(target, weight):
    body = get_op("nll_loss").function
    with pytest.raises(IndexError, match="out of bounds"):
        body(tp.zeros(2, 3), tp.tensor([0, target]), weight)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("swapped", [False, True])
def test_whole_numbers_beside_others(name, reduction, dtype, swapped):
    """The loss is that of the converted numbers, forward and backward; torch refuses some of them."""
    torch = pytest.importorskip("torch", reason="computes the reference")
    values = [[0.25, -0.5, 1.75], [2.5, 0.0, -3.0]]
    whole = [[0, 1, 1], [1, 0, 1]]

    def outcome(lib, converted):
        x = lib.tensor(values, requires_grad=True)
        y = lib.tensor(whole, dtype=getattr(lib, dtype))
        if converted:
            y = y.to(x.dtype)
        pair = (y, x) if swapped else (x, y)
        for _ in range(2):  # a call that is known goes another way
            x.grad = None
            result = getattr(lib.nn.functional, name)(*pair, reduction=reduction)
            result.sum().backward()
        return str(result.dtype).split(".")[-1], result.tolist(), x.grad.tolist()

    found, expected = outcome(tp, False), outcome(torch, True)
    assert found[0] == expected[0]
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        assert np.asarray(ours) == pytest.approx(np.asarray(theirs), rel=1e-6)


def test_triplets_have_one_number_of_dimensions():
    x = tp.ones(4, 3)
    for function in (F.triplet_margin_loss, F.triplet_margin_with_distance_loss):
        with pytest.raises(RuntimeError, match="anchor 2D, positive 0D, and negative 2D"):
            function(x, tp.tensor(1.0), x)
