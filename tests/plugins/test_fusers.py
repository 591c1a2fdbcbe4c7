"""A third party's fuser runs parts of compiled programs on its device; one that fails is set aside."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.errors import PluginWarning
from tensorplug.core.plugins import manager
from tensorplug.plugin import Fuser, Operand, Region, hookimpl

from .conftest import ToyArray, full

OPS = {"add": np.add, "mul": np.multiply}


class Calculator(Fuser):
    """All sums and products of one program that lie behind each other, evaluated by a small interpreter."""

    name, device_type = "calculator", "toy"

    def __init__(self, fault=None):
        self.fault = fault
        self.calls = self.compiled = 0

    def regions(self, program):
        if self.fault == "regions":
            raise RuntimeError("no regions today")
        steps = [n for n in sorted(program.free) if program.steps[n].op in OPS]
        return [Region(tuple(steps), 1.0)] if len(steps) > 1 else []

    def compile(self, program, region, inputs, outputs):
        if self.fault == "compile":
            raise RuntimeError("no compiler today")
        if self.fault == "declined":
            return None
        self.compiled += 1
        steps = [program.steps[number] for number in region.steps]

        def call(arrays):
            self.calls += 1
            if self.fault == "call" and self.calls > 2:
                raise RuntimeError("no more")
            values = dict(zip(inputs, [array.data for array in arrays], strict=True))
            for step in steps:
                given = [values[a.place] if type(a) is Operand else a.data for a in step.arguments]
                values[step.outputs[0]] = OPS[step.op](*given)
            made = [values[place] for place in outputs]
            if self.fault == "shape":
                made = [array.reshape(1, *array.shape) for array in made]
            if self.fault == "dtype":
                made = [array.astype("float64") for array in made]
            if self.fault == "number":
                made = []
            return [array if self.fault == "class" else ToyArray(array) for array in made]

        return call


def stranger(fuser):
    class Stranger:
        name = "stranger"

        @hookimpl
        def tensorplug_fusers(self):
            return [fuser]

    return Stranger()


def program(x, y):
    return (x + y) * x + y * 2.0


def values(tensor):
    return tensor._array.data


@pytest.fixture
def tensors(toy):
    return full(3.0, 2, device="toy"), full(0.5, 2, device="toy")


def test_a_fuser_of_a_third_party_is_called(registry, tensors):
    fuser = Calculator()
    registry.register(stranger(fuser))
    compiled = tp.compile(program)
    with tp.no_grad():
        for _ in range(4):
            assert values(compiled(*tensors)).tolist() == [11.5, 11.5]
    assert fuser.compiled == 1
    assert fuser.calls >= 3
    assert not registry.quarantined_fusers()
    calls = fuser.calls
    registry.unregister("stranger")
    with tp.no_grad():
        assert values(compiled(*tensors)).tolist() == [11.5, 11.5]
    assert fuser.calls == calls


def test_a_region_of_which_nothing_comes_out_is_not_compiled(registry):
    """Of a loss whose gradient alone is asked for, what was added up is left over."""

    class Adder(Fuser):
        name, device_type, priority = "adder", "cpu", 1000
        regions_named, outputs = 0, ()

        def regions(self, program):
            steps = tuple([n for n in sorted(program.free) if program.steps[n].op == "add"])
            self.regions_named += len(steps) > 1
            return [Region(steps, 1.0)] if len(steps) > 1 else []

        def compile(self, program, region, inputs, outputs):
            self.outputs += (len(outputs),)

    def loss(*tensors):
        return sum([tensor.exp().sum() for tensor in tensors])

    fuser = Adder()
    registry.register(stranger(fuser))
    compiled = tp.compile(lambda *given: tp.func.grad(loss, (0, 1, 2))(*given))
    tensors = [tp.zeros(2, requires_grad=True) for _ in range(3)]
    for _ in range(3):
        assert [g.tolist() for g in compiled(*tensors)] == [[1.0, 1.0]] * 3
    assert fuser.regions_named
    assert 0 not in fuser.outputs


def test_a_fuser_may_come_later(registry, tensors):
    compiled = tp.compile(program)
    with tp.no_grad():
        for _ in range(3):
            compiled(*tensors)
        fuser = Calculator()
        registry.register(stranger(fuser))
        assert values(compiled(*tensors)).tolist() == [11.5, 11.5]
    assert fuser.calls


@pytest.mark.parametrize(
    "fault", ["regions", "compile", "call", "shape", "dtype", "number", "class", "declined"]
)
def test_a_broken_fuser_is_set_aside(registry, tensors, fault):
    fuser = Calculator(fault)
    registry.register(stranger(fuser))
    compiled = tp.compile(program)

    def run():
        for _ in range(5):
            assert values(compiled(*tensors)).tolist() == [11.5, 11.5]

    with tp.no_grad():
        if fault == "declined":
            run()
            assert not registry.quarantined_fusers()
            return
        with pytest.warns(PluginWarning, match="fuser 'calculator' is not used any more"):
            run()
    (entry,) = registry.quarantined_fusers()
    assert (entry.name, entry.plugin) == ("calculator", "stranger")
    assert not manager.fusers_of("toy")
    calls = fuser.calls
    with tp.no_grad():
        tp.compile(lambda x, y: program(x, y) + 1.0)(*tensors)
    assert fuser.calls == calls
    registry.unregister("stranger")
    assert not registry.quarantined_fusers()


class Every(Fuser):
    """Takes whatever steps it is told to, and says which it was given."""

    name, device_type, priority = "every", "cpu", 900

    def __init__(self, wanted):
        self.wanted = wanted
        self.given = []

    def regions(self, program):
        return [Region(steps, float(len(steps))) for steps in self.wanted]

    def compile(self, program, region, inputs, outputs):
        self.given.append((region.steps, len(inputs), len(outputs)))
        return


def test_regions_are_checked(registry):
    # Steps: exp (0), relu (1) of it, sum (2) of the relu, exp + sum (3).
    fuser = Every([(0, 1, 2, 3), (0, 3), (0, 1), (1, 2), (0, 1, 3), (7, 1), ()])
    registry.register(stranger(fuser))

    def function(x):
        y = x.exp()
        return y + y.relu().sum()

    compiled = tp.compile(function)
    x = tp.randn(3)
    with tp.no_grad():
        for _ in range(3):
            assert tp.equal(compiled(x), function(x))
    # What lies between two steps of a region is in it: relu and sum are between exp and the addition.
    assert fuser.given == [((0, 1, 2, 3), 1, 1), ((0, 1), 1, 2), ((1, 2), 1, 1)]


def test_what_draws_keeps_its_turn(registry):
    # Steps: exp (0), bernoulli (1) of it, rand (2), log1p (3) of that: the draws keep their order.
    fuser = Every([(0, 3), (0,), (3,)])
    registry.register(stranger(fuser))

    def function(x):
        y = x.exp()
        return y, y.bernoulli(), tp.rand(3).log1p()

    compiled = tp.compile(function)
    x = -tp.rand(3)
    with tp.no_grad():
        for seed in range(3):
            tp.manual_seed(seed)
            found = compiled(x)
            tp.manual_seed(seed)
            for made, wanted in zip(found, function(x), strict=True):
                assert tp.equal(made, wanted)
    assert [steps for steps, *_ in fuser.given] == [(0,), (3,)]
    assert not tp.plugins.quarantined_fusers()


class Doubling(Fuser):
    """Computes x * w by a table of the weight that it makes when it compiles."""

    name, device_type, priority = "doubling", "cpu", 900

    def __init__(self):
        self.compiled = 0

    def regions(self, program):
        return [
            Region((number,), 1.0)
            for number in sorted(program.free)
            if program.steps[number].op == "mul"
            and any([program.arrays[place].constant for place in program.steps[number].inputs])
        ]

    def compile(self, program, region, inputs, outputs):
        self.compiled += 1
        constant = next(place for place in inputs if program.arrays[place].constant)
        table = program.constant(constant).copy()
        (other,) = [number for number, place in enumerate(inputs) if place != constant]
        return lambda arrays: [arrays[other] * table]


class Scale(tp.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = tp.nn.Parameter(tp.tensor([1.0, 2.0]))

    def forward(self, x):
        return x * self.weight


def test_values_of_state_are_renewed(registry):
    fuser = Doubling()
    registry.register(stranger(fuser))
    module = Scale()
    compiled = tp.compile(module)
    x = tp.tensor([1.0, 1.0])
    with tp.no_grad():
        for write in range(8):  # after some of them no values are taken any more
            for _ in range(3):
                assert compiled(x).tolist() == [1.0 + write, 2.0 + write]
            module.weight.add_(1)
        module.weight = tp.nn.Parameter(tp.tensor([5.0, 6.0]))
        for _ in range(3):
            assert compiled(x).tolist() == [5.0, 6.0]
    assert 2 <= fuser.compiled <= 6


def test_devices_without_fusers_run_by_kernels(toy):
    compiled = tp.compile(program)
    x, y = full(3.0, 2, device="toy"), full(0.5, 2, device="toy")
    with tp.no_grad():
        for _ in range(3):
            assert values(compiled(x, y)).tolist() == [11.5, 11.5]
    assert compiled.explain().calls == 2
