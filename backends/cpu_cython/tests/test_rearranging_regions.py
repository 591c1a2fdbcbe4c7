"""Views of compiled programs that are made in one call, against NumPy's own."""

import random

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.rearranging_views", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython.rearranging_views import Views

ARRAY = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)


def drawn(draw, array):
    """Return some view of an array, made of several steps."""
    for _ in range(draw.randint(1, 4)):
        how = draw.randrange(4)
        if how == 0:
            array = array.transpose(draw.sample(range(array.ndim), array.ndim))
        elif how == 1 and array.ndim > 1:
            array = array[draw.randrange(len(array))]
        elif how == 2 and array.ndim:
            array = array[..., draw.randrange(array.shape[-1]) :: 2]
        else:
            array = np.broadcast_to(array[None], (draw.randint(1, 3), *array.shape))
    return array


@pytest.mark.parametrize("seed", range(30))
def test_views(seed):
    """They show the same elements, of the arrays of each call."""
    draw = random.Random(seed)
    sources = [ARRAY, ARRAY.transpose(2, 0, 3, 1)]
    chosen = [draw.randrange(2) for _ in range(3)]
    wanted = [drawn(draw, sources[number]) for number in chosen]
    address = [source.ctypes.data for source in sources]
    views = Views(
        [(source.shape, source.strides) for source in sources],
        [
            (number, view.ctypes.data - address[number], view.shape, view.strides)
            for number, view in zip(chosen, wanted, strict=True)
        ],
    )
    made = views(sources)
    for view, expected in zip(made, wanted, strict=True):
        assert np.array_equal(view, expected)
        assert view.strides == expected.strides
        assert np.may_share_memory(view, expected)
    other = [np.empty_like(source) for source in sources]
    other[0][:] = other[1][:] = 7
    assert all([(view == 7).all() for view in views(other)])
    assert views([ARRAY, ARRAY.copy()]) is None
    assert views([ARRAY[:1], sources[1]]) is None
    frozen = [source.view() for source in sources]
    for source in frozen:
        source.flags.writeable = False
    assert not any([view.flags.writeable for view in views(frozen)])


def steps_of(compiled):
    programs = [e.program for found in compiled._entries.values() for e in found if e.program]
    return [step for program in programs for step in program.steps]


def test_a_program_of_views():
    """Those that only lead to others are left out; what comes out shows the memory that it showed."""

    def program(x):
        y = x + 1
        a, b, c = y.view(2, 3, 2, 4).permute(1, 3, 0, 2).unbind(0)
        return a.exp() * 2 + b, c.T

    compiled = tp.compile(program)
    for _ in range(4):
        x = tp.randn(6, 8)
        found = compiled(x)
        for value, expected in zip(found, program(x), strict=True):
            assert value.stride() == expected.stride()
            assert tp.equal(value, expected)
    fused = [s for s in steps_of(compiled) if hasattr(s, "fuser") and s.fuser.name == "views"]
    assert [len(step.out) for step in fused] == [3] or [len(step.out) for step in fused] == [2, 1]
    assert not [q for q in tp.plugins.quarantined_fusers() if q.plugin.startswith("cpu_cython")]


def test_what_may_be_a_copy():
    """Reshapes that copy, and views of nothing, are left to their kernels."""

    def program(x):
        y = x + 1
        return (y.T.reshape(-1) * 2, y[:0].T.view(-1), y.T.reshape(2, -1).T.reshape(-1))

    compiled = tp.compile(program)
    for _ in range(4):
        x = tp.randn(6, 8)
        for value, expected in zip(compiled(x), program(x), strict=True):
            assert tp.equal(value, expected)
