"""Which modules run, and whether they do so backward."""

import pytest

import tensorplug as tp
from tensorplug.utils.module_tracker import ModuleTracker


class Watched(tp.nn.Module):
    """Notes what a tracker says while it runs, in either direction."""

    def __init__(self, tracker, seen):
        super().__init__()
        self.tracker, self.seen = tracker, seen

    def note(self, *_):
        self.seen.append((sorted(self.tracker.parents), self.tracker.is_bw))

    def forward(self, x):
        self.note()
        y = x * 2
        y.register_hook(self.note)
        return y * 3


@pytest.mark.parametrize("how", ["backward", "grad", "checkpoint"])
def test_a_tracker_tells_forward_from_backward(how):
    tracker, seen = ModuleTracker(), []
    model = tp.nn.Sequential(Watched(tracker, seen), Watched(tracker, seen))
    x = tp.ones(2, requires_grad=True)
    with tracker:
        if how == "checkpoint":
            y = tp.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
        else:
            y = model(x)
        assert [backward for _, backward in seen] == [False, False]
        assert not tracker.is_bw
        if how == "grad":
            tp.autograd.grad(y.sum(), x)
        else:
            y.sum().backward()
        assert not tracker.is_bw
    assert [paths for paths, _ in seen[:2]] == [
        ["Global", "Sequential", "Sequential.0"],
        ["Global", "Sequential", "Sequential.1"],
    ]
    assert len(seen) >= 4
    assert all(backward for _, backward in seen[2:])
    if how != "checkpoint":
        assert [paths[-1] for paths, _ in seen[2:]] == ["Sequential.1", "Sequential.0"]
