"""Optimizers that stand around another one, and never call ``Optimizer.__init__``, as libraries have them."""

import tensorplug as tp


class Wrapper(tp.optim.Optimizer):
    def __init__(self, optimizer):
        self.optimizer = optimizer

    @property
    def state(self):
        return self.optimizer.state

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    @property
    def defaults(self):
        return self.optimizer.defaults

    def step(self, closure=None):
        return self.optimizer.step(closure)


def test_a_wrapper_steps_and_is_scheduled(recwarn):
    weight = tp.nn.Parameter(tp.ones(2))
    wrapper = Wrapper(tp.optim.SGD([weight], lr=0.5))
    scheduler = tp.optim.lr_scheduler.StepLR(wrapper, 1, gamma=0.1)
    steps = []
    handle = tp.optim.optimizer.register_optimizer_step_post_hook(lambda *_: steps.append(1))
    try:
        for _ in range(2):
            wrapper.zero_grad()
            weight.sum().backward()
            wrapper.step()
            scheduler.step()
    finally:
        handle.remove()
    assert weight.tolist() == [0.44999998807907104, 0.44999998807907104]
    assert len(steps) == 2  # once for each step, not for the wrapper too
    assert not recwarn.list


def test_tensors_sorted_by_device_and_dtype():
    a, b, c = tp.ones(1), tp.ones(2, dtype=tp.float64), tp.ones(3)
    sort = tp.optim.Optimizer._group_tensors_by_device_and_dtype
    found = sort([[a, b, c], [c, b, a]], with_indices=True)
    cpu = tp.device("cpu")
    assert [list(map(id, tensors)) for tensors in found[cpu, tp.float32][0]] == [
        [id(a), id(c)], [id(c), id(a)]
    ]  # fmt: skip
    assert found[cpu, tp.float32][1] == [0, 2]
    assert found[cpu, tp.float64][1] == [1]
