"""Networks that remember tensors from call to call, as attributes of modules and objects, compiled.

Programs of drawn steps read and set attributes; between the calls the caller reads them, writes what they
hold, sets them or has two of them be one. Results, all attributes and which of their tensors are one are
compared with the program as it is: 60 programs; with TENSORPLUG_FUZZ in the environment as many as that says.
"""

import os
import random

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph import compiled, given

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "60"))
PARTS = 6


class Layer(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.scale = nn.Parameter(tp.rand(2, 3))
        self.memory = None
        self.other = tp.ones(2, 3)
        self.several = [tp.zeros(2, 3), 0]
        self.table = {"last": tp.ones(2, 3)}
        self.steps = steps

    def forward(self, x):
        for step in self.steps:
            x = step(self, x)
        return x


class Holder:
    def __init__(self):
        self.memory = tp.zeros(2, 3)


def adds(layer, x):
    layer.memory = x if layer.memory is None else layer.memory * 0.5 + x
    return layer.memory + layer.scale * x


def keeps_two(layer, x):
    layer.several = [x.tanh(), x * 2]
    return x + layer.several[0]


def reads_two(layer, x):
    return x + layer.several[0] * 0.5


def into_a_table(layer, x):
    y = x - layer.table["last"]
    layer.table = {"last": x.detach() * 0.9}
    return y


def swaps(layer, x):
    layer.other, layer.memory = layer.memory if layer.memory is not None else x * 1, layer.other
    return x + layer.other


def keeps_its_argument(layer, x):
    y = x + layer.other
    layer.other = x
    return y


def writes(layer, x):
    layer.other.mul_(0.5).add_(1)
    return x * layer.other


def views(layer, x):
    layer.other = (x * 2).t()
    return x + layer.other.t()


def one_in_two(layer, x):
    layer.other = layer.memory = x * 1.5
    return x


def of_an_object(layer, x):
    holder.memory = holder.memory * 0.5 + x
    return x + holder.memory


def counts(layer, x):
    layer.count = getattr(layer, "count", 0) + 1
    return x


def only_reads(layer, x):
    return x if layer.memory is None else x + layer.memory


holder = Holder()
STEPS = [
    adds, adds, keeps_two, keeps_two, reads_two, into_a_table, swaps, keeps_its_argument, writes, views,
    one_in_two, of_an_object, only_reads, counts,
]  # fmt: skip


def nothing(layer, x, result):
    pass


def forgets(layer, x, result):
    layer.memory = None
    layer.other = tp.ones(2, 3)


def writes_memory(layer, x, result):
    with tp.no_grad():
        for tensor in (layer.memory, layer.other, layer.several[0]):
            if tensor is not None and not tensor.requires_grad:
                tensor.add_(1)


def writes_the_result(layer, x, result):
    with tp.no_grad():
        result.detach().mul_(2)


def one_for_both(layer, x, result):
    layer.other = layer.memory = tp.full((2, 3), 0.25)


def keeps_a_parameter(layer, x, result):
    layer.other = layer.scale.detach()


def of_another_shape(layer, x, result):
    layer.memory = tp.ones(1, 3)
    layer.several = [tp.ones(3), 5]


BETWEEN = [
    nothing, nothing, nothing, forgets, writes_memory, writes_the_result, one_for_both, keeps_a_parameter,
    of_another_shape,
]  # fmt: skip


def shown(layer):
    known = {}

    def told(value):
        if isinstance(value, tp.Tensor):
            number = known.setdefault(id(value), len(known))
            return number, value.tolist(), value.requires_grad
        if isinstance(value, list):
            return [told(item) for item in value]
        if isinstance(value, dict):
            return [(name, told(item)) for name, item in value.items()]
        return value

    names = [name for name in vars(layer) if name != "steps" and not name.startswith("_")]
    return names, [told(getattr(layer, name)) for name in names], told(holder.memory)


def story(seed, recorded, compiles):
    """Return what calls of a drawn network tell, and how many ran as graphs."""
    draw = random.Random(seed)
    tp.manual_seed(0)
    layer = Layer([draw.choice(STEPS) for _ in range(draw.randint(1, 4))])
    holder.memory = tp.zeros(2, 3)
    run = tp.compile(layer) if compiles else layer
    told = []
    for _ in range(9):
        x = tp.randn(2, 3)
        with tp.set_grad_enabled(recorded):
            try:
                result = run(x)
                told.append((result.tolist(), result.requires_grad, shown(layer)))
            except RuntimeError as error:
                told.append(str(error))
                break
        draw.choice(BETWEEN)(layer, x, result)
        kept = (layer.memory, layer.other, holder.memory)
        told += [None if tensor is None else tensor.tolist() for tensor in kept]
        if recorded:  # what is remembered keeps no graphs
            layer.memory = None if layer.memory is None else layer.memory.detach()
            layer.other, holder.memory = layer.other.detach(), holder.memory.detach()
            layer.several = [tp.zeros(2, 3), 0]
    return told, run.explain().calls if compiles else 0


def compare(seed, recorded):
    found, calls = story(seed, recorded, True)
    assert found == story(seed, recorded, False)[0]
    return calls


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("part", range(PARTS))
def test_what_networks_remember(part, recorded):
    calls = [compare(seed, recorded) for seed in range(part, COUNT, PARTS)]
    assert sum(calls) > len(calls)


@pytest.mark.parametrize("step", [adds, keeps_two, into_a_table, one_in_two, of_an_object])
def test_one_graph_once_it_is_known(step):
    layer = Layer([step, step])
    run = tp.compile(layer)
    for _ in range(9):
        run(tp.randn(2, 3))
    assert len(run.explain().graphs) == 1
    assert run.explain().calls >= 4


def test_planted_faults(monkeypatch):
    """Attributes stay what they were set to in the first calls; or what they hold is known as state, too."""
    put_back = given.put_back
    failed = 0
    with monkeypatch.context() as patch:
        patch.setattr(
            "tensorplug.graph.entries.put_back",
            lambda value, contents: (
                None if type(value) is given.Attribute else put_back(value, contents)
            ),
        )
        for seed in range(30):
            try:
                compare(seed, False)
            except AssertionError:
                failed += 1
    assert failed > 5
    monkeypatch.setattr(compiled.Compiled, "_counts_by_contents", lambda run, attributes: False)
    with pytest.raises(AssertionError):
        test_one_graph_once_it_is_known(adds)
