"""Training with images channels last inside, where a plugin asks for it."""

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.plugins import manager
from tensorplug.plugin import Fuser, hookimpl


class Asks(Fuser):
    name = "channels_last_wanted"
    device_type = "cpu"
    priority = -7
    channels_last = True

    def regions(self, program):
        return ()

    def compile(self, program, region, inputs, outputs):
        raise AssertionError("has no regions")


class Plugin:
    name = "channels_last_wanted"

    @hookimpl
    def tensorplug_fusers(self):
        return [Asks()]


@pytest.fixture
def asked():
    tp.plugins.register(Plugin())
    yield
    tp.plugins.unregister(Plugin.name)


def copies(graph):
    return [node.arguments["stride"] for node in graph if node.name == "clone_strided"]


def test_images_lie_channels_last_inside(asked):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3))
    compiled = tp.compile(lambda x: network(x))
    x = tp.randn(2, 3, 8, 8)
    assert compiled(x).stride() == compiled(x).stride() == network(x).stride()
    (graph,) = compiled.explain().graphs
    (entries,) = compiled._entries.values()
    (training,) = entries[0].trainings.values()
    assert copies(training.joint.forward)[0] == (192, 1, 24, 3)
    assert not copies(graph)


def test_one_convolution_stays_as_it_is(asked):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    compiled = tp.compile(lambda x: network(x))
    for _ in range(2):
        compiled(tp.randn(2, 3, 8, 8)).sum().backward()
    (entries,) = compiled._entries.values()
    (training,) = entries[0].trainings.values()
    assert not copies(training.joint.forward)


def test_nothing_changes_where_nobody_asks():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3))
    compiled = tp.compile(lambda x: network(x))
    x = tp.randn(2, 3, 8, 8)
    for _ in range(2):
        compiled(x)
    (entries,) = compiled._entries.values()
    (training,) = entries[0].trainings.values()
    asks = any([fuser.channels_last for fuser, _ in manager.fusers_of("cpu")])
    assert bool(copies(training.joint.forward)) == asks
