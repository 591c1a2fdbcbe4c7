"""A module's own ``__getattr__`` is not run while its parts are assigned."""

import tensorplug as tp
from tensorplug import nn


class Forwarding(nn.Module):
    """Looks for what it does not have in a part of its own, without a net below it."""

    def __init__(self, part):
        super().__init__()
        self.inner = part

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def test_a_part_is_assigned_before_it_can_be_asked():
    part = nn.Linear(2, 1)
    model = Forwarding(part)
    assert model.inner is part
    assert model.in_features == 2
    model.inner = None
    assert model.inner is None
    model.inner = nn.Linear(3, 1)
    assert model.in_features == 3


def test_hooks_still_see_the_parts():
    seen = []
    handle = nn.register_module_module_registration_hook(lambda *call: seen.append(call[1]))
    try:
        nn.Sequential(nn.Linear(1, 1))
        Forwarding(nn.Linear(1, 1))
    finally:
        handle.remove()
    assert seen == ["0", "inner"]


def test_synchronised_normalisation_in_one_process():
    tp.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(2, 3, 1), nn.Sequential(nn.BatchNorm1d(3)), nn.InstanceNorm1d(3)
    )
    x = tp.randn(4, 2, 5)
    expected = model(x)
    model[1][0].reset_running_stats()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert isinstance(converted[1][0], nn.SyncBatchNorm)
    assert not isinstance(converted[2], nn.SyncBatchNorm)
    assert tp.equal(converted(x), expected)
    assert converted.eval()(x).shape == expected.shape
