"""Basic keys that are new each time, and those that come again, show what NumPy shows."""

import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.call_cache import clear_call_caches
from tensorplug.core.tensor import basic_views

COUNT = 3 * basic_views._NEW

#: Keys of a step of a loop, of which some are new in each step.
LOOPS = {
    "rows": lambda i: [np.s_[i : i + 3]],
    "growing": lambda i: [np.s_[:i]],
    "from the end": lambda i: [np.s_[-i - 1 :]],
    "stepping": lambda i: [np.s_[i :: i % 4 + 1]],
    "several": lambda i: [np.s_[i : i + 2, 1:3], np.s_[i, None, :2], np.s_[..., i % 5]],
    "beside known ones": lambda i: [np.s_[i : i + 2], np.s_[:, 1:3], np.s_[1:-1, ::2]],
    "in turns": lambda i: [np.s_[i % 4 : i % 4 + 2]],
    "known after new": lambda i: [np.s_[min(i, 2 * COUNT // 3) :]],
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_a_loop_over_keys(loop: str, recorded: bool) -> None:
    clear_call_caches()
    numbers = np.arange(COUNT * 5.0).reshape(COUNT, 5)
    tensor = tp.from_numpy(numbers.copy()).requires_grad_(recorded)
    keys = itertools.chain.from_iterable(LOOPS[loop](i) for i in [*range(COUNT), *range(COUNT)])
    for key in keys:
        shown, wanted = tensor[key], numbers[key]
        assert shown.shape == wanted.shape
        assert shown.tolist() == wanted.tolist()
        assert shown.stride() == tuple(step // 8 for step in wanted.strides) or not wanted.size
        assert shown.requires_grad is recorded
    if recorded:
        expected = np.zeros_like(numbers)
        for key in LOOPS[loop](1):
            expected[key] += 1
            tensor[key].sum().backward()
        assert tensor.grad is not None
        assert tensor.grad.tolist() == expected.tolist()
    else:
        tensor[LOOPS[loop](1)[0]].fill_(-1)
        numbers[LOOPS[loop](1)[0]] = -1
        assert tensor.tolist() == numbers.tolist()
