"""Reductions of segments: what torch makes of empty ones, ties, zeros and NaN, forward and backward."""

import itertools
import math

import numpy as np
import pytest

import tensorplug as tp

WAYS = ("sum", "mean", "max", "min", "prod", "amax", "amin")
NUMBERS = [3.0, 3.0, 1.0, 0.0, 5.0, 2.0, 0.0, 0.0, 7.0, -1.0, 4.0, 4.0]

#: Shapes, axis and lengths, in which segments are empty at either end and in between.
SEGMENTS = [
    ((12,), 0, [2, 0, 3, 7, 0]),
    ((12,), 0, [0, 12]),
    ((6, 2), 0, [3, 0, 3]),
    ((2, 6), 1, [[2, 0, 4], [0, 6, 0]]),
    ((2, 3, 2), 1, [[3, 0], [1, 2]]),
]


def outcome(lib, way, shape, axis, initial, **places):
    x = lib.tensor(NUMBERS, dtype=lib.float64).reshape(shape).requires_grad_()
    result = lib.segment_reduce(
        x, way, axis=axis, initial=initial, **{k: lib.tensor(v) for k, v in places.items()}
    )
    weights = lib.arange(1.0, result.numel() + 1, dtype=lib.float64).reshape(result.shape)
    result.backward(weights)
    return result.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("shape", "axis", "lengths"), SEGMENTS)
def test_as_torch(way, shape, axis, lengths):
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    offsets = np.concatenate(
        [np.zeros_like(np.array(lengths)[..., :1]), np.cumsum(lengths, -1)], -1
    )
    for initial, places in itertools.product(
        (None, 3.0, -1.0, 9.0), ({"lengths": lengths}, {"offsets": offsets.tolist()})
    ):
        ours, theirs = (outcome(lib, way, shape, axis, initial, **places) for lib in (tp, torch))
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)


@pytest.mark.parametrize("way", ["max", "min"])
def test_nan_takes_the_gradient_of_extremes(way):
    x = tp.tensor([1.0, math.nan, 3.0, 4.0, math.nan, math.nan], requires_grad=True)
    result = tp.segment_reduce(x, way, lengths=tp.tensor([3, 1, 2]))
    result.backward(tp.tensor([10.0, 20.0, 30.0]))
    assert [math.isnan(value) for value in result.tolist()] == [True, False, True]
    assert x.grad.tolist() == [0, 10, 0, 20, 15, 15]


@pytest.mark.parametrize("others", list(itertools.product((0.0, 2.0, math.nan), repeat=3)))
def test_gradient_of_a_product_is_that_of_the_others(others):
    """Of NaN too, unless zeros stand beside it."""
    x = tp.tensor([math.nan, *others], dtype=tp.float64, requires_grad=True)
    tp.segment_reduce(x, "prod", lengths=tp.tensor([4])).sum().backward()
    factors = x.tolist()
    for i, found in enumerate(x.grad.tolist()):
        wanted = math.prod(factors[:i] + factors[i + 1 :])
        if 0.0 not in others or not math.isnan(found):
            np.testing.assert_equal(found, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_elements_outside_of_all_segments_are_left_out(way):
    x = tp.arange(1.0, 7.0, dtype=tp.float64).requires_grad_()
    result = tp.segment_reduce(x, way, offsets=tp.tensor([1, 3, 4]))
    whole = tp.segment_reduce(x.detach()[1:4], way, lengths=tp.tensor([2, 1]))
    assert result.tolist() == whole.tolist()
    result.sum().backward()
    assert (x.grad[[0, 4, 5]] == 0).all()
    short = tp.segment_reduce(x.detach(), way, lengths=tp.tensor([1, 2]), unsafe=True)
    assert (
        short.tolist() == tp.segment_reduce(x.detach()[:3], way, lengths=tp.tensor([1, 2])).tolist()
    )


def test_without_data_shapes_are_known():
    x = tp.ones(5, 2, device="meta")
    result = tp.segment_reduce(x, "sum", lengths=tp.tensor([2, 3], device="meta"))
    assert result.shape == (2, 2)
