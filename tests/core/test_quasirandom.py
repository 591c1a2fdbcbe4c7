"""Sobol sequences: SciPy's, and torch's where it is installed."""

import numpy as np
import pytest
from scipy.stats.qmc import Sobol, discrepancy

import tensorplug as tp
from tensorplug.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 9, 300])
def test_unscrambled_points_are_those_of_the_literature(dimension):
    engine = SobolEngine(dimension)
    first, second = engine.draw(5, dtype=tp.float64), engine.draw(3, dtype=tp.float64)
    expected = Sobol(dimension, scramble=False, bits=30).random(8)
    assert np.array_equal(tp.cat([first, second]).numpy(), expected)
    assert engine.num_generated == 8


@pytest.mark.parametrize("dimension", [1, 3, 1111])
def test_against_torch(dimension):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ours, theirs = SobolEngine(dimension), torch.quasirandom.SobolEngine(dimension)
    for count in (4, 1, 3):
        assert ours.draw(count).tolist() == theirs.draw(count).tolist()
    ours.fast_forward(5)
    theirs.fast_forward(5)
    ours.reset()
    theirs.reset()
    assert ours.draw_base2(3).tolist() == theirs.draw_base2(3).tolist()
    assert repr(ours) == repr(theirs)


def test_scrambled_points_are_even_and_repeatable():
    points = SobolEngine(3, scramble=True, seed=1).draw(256, dtype=tp.float64)
    assert points.equal(SobolEngine(3, scramble=True, seed=1).draw(256, dtype=tp.float64))
    assert not points.equal(SobolEngine(3, scramble=True, seed=2).draw(256, dtype=tp.float64))
    random = np.random.default_rng(0).random((256, 3))
    assert discrepancy(points.numpy()) < discrepancy(random) / 10
    assert "scramble=True, seed=1" in repr(SobolEngine(3, scramble=True, seed=1))


def test_out_and_dtype():
    out = tp.zeros(2, 3)
    assert SobolEngine(3).draw(2, out=out) is out
    assert out[1].tolist() == [0.5, 0.5, 0.5]
    assert SobolEngine(3).draw(2, dtype=tp.float16).dtype is tp.float16


@pytest.mark.parametrize("dimension", [0, 21202])
def test_too_many_dimensions(dimension):
    with pytest.raises(ValueError, match=rf"\[1, 21201\], got {dimension}"):
        SobolEngine(dimension)


def test_base_two_after_other_points():
    engine = SobolEngine(2)
    engine.draw(1)
    with pytest.raises(ValueError, match="n=1\\+2\\*\\*2=5"):
        engine.draw_base2(2)
