"""What a compiled program reads between calls that change it: however it reads, and nothing else counts."""

import copy
import dataclasses
import decimal
import functools
import inspect
import io
import logging
import operator
import os
import pickle
import sys
import threading
import types
import typing
from collections import defaultdict
from contextvars import ContextVar

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn


class Record:
    def __init__(self, **attributes):
        vars(self).update(attributes)


class Fields(Record):
    __match_args__ = ("number",)
    getter = property(operator.attrgetter("number"))

    def __iter__(self):
        return iter((self.number,))

    def __len__(self):
        return self.number

    def __repr__(self):
        return "x" * self.number

    def __eq__(self, other):
        return self.number == other

    __hash__ = None


class Delegate:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class LookedUp(Record):
    """Its attributes are looked up by methods of its own, in copies from the beginning."""

    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)


class Restored(LookedUp):
    def __setstate__(self, state):
        vars(self).update(state)


class HandedOut(LookedUp):
    """Whoever makes or copies one gets the one that there is."""

    def __new__(cls, **attributes):
        return one


one = object.__new__(HandedOut)


@dataclasses.dataclass(order=True)
class Data:
    number: int = 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.number = 1
        self.steps = 0
        self.history = []
        self.layer = nn.Linear(2, 2, bias=False)
        self.optimizer = tp.optim.Adam(self.layer.parameters())
        self.scheduler = tp.optim.lr_scheduler.StepLR(self.optimizer, 1)

    def forward(self, x):
        return self.layer(x)


class Scaled(nn.Linear):
    """A class of the library with an attribute of its own."""

    def __init__(self):
        super().__init__(2, 2, bias=False)
        self.number = 1

    def forward(self, x):
        return super().forward(x) * self.number


keys = ["number"]
pattern = "{0.number}"
inner = types.ModuleType("inner_of_test")
inner.number = 1
made = defaultdict(lambda: 1)
third = decimal.Decimal(1)


def matched(x, read):
    match read:
        case Fields(number):
            return x * number


def matched_by_name(x, read):
    match read:
        case Record(number=found):
            return x * found


def by_import(x, read):
    from operator import attrgetter as getter

    return x * getter(keys[0])(read)


called = operator.methodcaller("by_some_name")


def pickled(read):
    written = io.BytesIO()
    pickle.Pickler(written).dump(read)
    return pickle.loads(written.getvalue())


def with_number(make, change=None):
    """Return what is made, and what changes its number."""

    def changed(read, number):
        read.number = number

    return make, change or changed


RECORD = with_number(lambda: Record(number=1, name="number"))
FIELDS = with_number(lambda: Fields(number=1))
DATA = with_number(Data)
NESTED = with_number(
    lambda: Record(inner=Record(number=1)),
    lambda read, number: setattr(read.inner, "number", number),
)
DELEGATE = with_number(
    lambda: Delegate(Delegate(Record(number=1))),
    lambda read, number: setattr(read._inner._inner, "number", number),
)
LOOKED_UP = with_number(lambda: LookedUp(inner=LookedUp(number=1)), NESTED[1])
RESTORED = with_number(lambda: Restored(inner=LookedUp(number=1)), NESTED[1])
HANDED_OUT = with_number(
    lambda: object.__new__(HandedOut), lambda read, number: setattr(one, "number", number)
)
NET = with_number(Net)
SCALED = with_number(Scaled)

#: Ways to read, of what.
WAYS = {
    "attribute": (lambda x, read: x * read.number, RECORD),
    "getattr": (lambda x, read: x * getattr(read, "number", 3), RECORD),
    "getattr by a name": (lambda x, read: x * getattr(read, read.name), RECORD),
    "getattr by a part": (lambda x, read: x * getattr(read, keys[0][:3] + "ber"), RECORD),
    "map": (lambda x, read: x * sum(map(getattr, [read], keys)), RECORD),
    "partial": (lambda x, read: x * functools.partial(getattr, read)(keys[0]), RECORD),
    "attrgetter": (lambda x, read: x * operator.attrgetter(keys[0])(read), RECORD),
    "reduce": (
        lambda x, read: x * functools.reduce(getattr, ["inner", "number"], read),
        NESTED,
    ),
    "imported": (by_import, RECORD),
    "vars": (lambda x, read: x * vars(read)[keys[0]], RECORD),
    "table": (lambda x, read: x * read.__dict__[keys[0]], RECORD),
    "its own getattribute": (lambda x, read: x * read.__getattribute__(keys[0]), RECORD),
    "named getattribute": (lambda x, read: x * getattr(read, "__getattribute__")(keys[0]), RECORD),  # noqa: B009
    "format": (lambda x, read: x * float(pattern.format(read)), RECORD),
    "formatted": (lambda x, read: x * float(f"{read.number}"), RECORD),
    "eval": (lambda x, read: eval("x * read." + keys[0], {"x": x, "read": read}), RECORD),
    "copy": (lambda x, read: x * copy.copy(read).number, RECORD),
    "deepcopy": (lambda x, read: x * copy.deepcopy(read).inner.number, NESTED),
    "copy that looks up": (lambda x, read: x * copy.copy(read).inner.number, LOOKED_UP),
    "deepcopy that looks up": (lambda x, read: x * copy.deepcopy(read).inner.number, LOOKED_UP),
    "restored deepcopy": (lambda x, read: x * copy.deepcopy(read).inner.number, RESTORED),
    "copy of what is handed out": (lambda x, read: x * copy.copy(read).number, HANDED_OUT),
    "pickle": (lambda x, read: x * pickle.loads(pickle.dumps(read)).number, RECORD),
    "pickler": (lambda x, read: x * pickled(read).number, RECORD),
    "methodcaller": (
        lambda x, read: x * called(read),
        with_number(Record, lambda read, number: setattr(read, "by_some_name", lambda: number)),
    ),
    "members": (lambda x, read: x * dict(inspect.getmembers(read))[keys[0]], RECORD),
    "keyword pattern": (matched_by_name, RECORD),
    "pattern": (matched, FIELDS),
    "iteration": (lambda x, read: x * sum(read), FIELDS),
    "length": (lambda x, read: x * len(read), FIELDS),
    "text": (lambda x, read: x * len(repr(read)), FIELDS),
    "comparison": (lambda x, read: x * (read == 4), FIELDS),
    "property of a getter": (lambda x, read: x * read.getter, FIELDS),
    "delegate": (lambda x, read: x * read.number, DELEGATE),
    "asdict": (lambda x, read: x * dataclasses.asdict(read)["number"], DATA),
    "replace": (lambda x, read: x * dataclasses.replace(read).number, DATA),
    "order": (lambda x, read: x * (read < Data(4)), DATA),
    "attribute of a module": (lambda x, read: x * read.number, NET),
    "of a class of the library": (lambda x, read: read(x), SCALED),
    "learning rate": (
        lambda x, read: x * read.optimizer.param_groups[0]["lr"],
        with_number(Net, lambda net, number: net.optimizer.param_groups[0].update(lr=number)),
    ),
    "schedule": (
        lambda x, read: x * read.scheduler.get_last_lr()[0],
        with_number(Net, lambda net, number: setattr(net.scheduler, "_last_lr", [number])),
    ),
    "mode of a layer": (
        lambda x, read: x * read.layer.training,
        with_number(Net, lambda net, number: net.layer.train(number % 2 == 0)),
    ),
    "weight of a layer": (
        lambda x, read: read(x),
        with_number(
            Net,
            lambda net, n: setattr(net.layer, "weight", nn.Parameter(tp.full((2, 2), float(n)))),
        ),
    ),
    "parameter of a distribution": (
        lambda x, read: read.log_prob(x),
        with_number(
            lambda: tp.distributions.Normal(tp.zeros(2), 1.0),
            lambda normal, number: setattr(normal, "loc", tp.full((2,), float(number))),
        ),
    ),
    "module by its name": (
        lambda x, read: x * __import__("inner_of_test").number,
        with_number(dict, lambda _, number: setattr(inner, "number", number)),
    ),
    "what makes missing values": (
        lambda x, read: x * made.default_factory(),
        with_number(dict, lambda _, number: setattr(made, "default_factory", lambda: number)),
    ),
    "places of decimal numbers": (
        lambda x, read: x * float(third / 3),
        with_number(dict, lambda _, number: setattr(decimal.getcontext(), "prec", number)),
    ),
    "places of arrays": (
        lambda x, read: x * np.get_printoptions()["precision"],
        with_number(dict, lambda _, number: np.set_printoptions(precision=number)),
    ),
    "depth of calls": (
        lambda x, read: x * sys.getrecursionlimit(),
        with_number(dict, lambda _, number: sys.setrecursionlimit(2000 + number)),
    ),
    "name of the thread": (
        lambda x, read: x * len(threading.current_thread().name),
        with_number(
            dict, lambda _, number: setattr(threading.current_thread(), "name", "x" * number)
        ),
    ),
    "level of a logger": (
        lambda x, read: x * logging.getLogger("inner_of_test").isEnabledFor(10),
        with_number(dict, lambda _, n: logging.getLogger("inner_of_test").setLevel(10 + n % 2)),
    ),
    "handlers of a logger": (
        lambda x, read: x * len(logging.getLogger("inner_of_test").handlers),
        with_number(
            dict, lambda _, n: logging.getLogger("inner_of_test").addHandler(logging.NullHandler())
        ),
    ),
    "annotations of a class": (
        lambda x, read: x * len(Data.__annotations__),
        with_number(dict, lambda _, n: Data.__annotations__.update({f"of{n}": int})),
    ),
}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setitem(sys.modules, "inner_of_test", inner)
    shown, limit, places = np.get_printoptions(), sys.getrecursionlimit(), decimal.getcontext().prec
    name = threading.current_thread().name
    annotations = dict(Data.__annotations__)
    yield
    np.set_printoptions(**shown)
    sys.setrecursionlimit(limit)
    decimal.getcontext().prec = places
    threading.current_thread().name = name
    Data.__annotations__.clear()
    Data.__annotations__.update(annotations)
    logging.getLogger("inner_of_test").handlers.clear()


@pytest.mark.parametrize("way", WAYS)
def test_is_read_anew(way):
    program, (make, change) = WAYS[way]
    read = make()
    compiled = tp.compile(program)
    x = tp.ones(2)
    for number in (1, 2, 3, 4, 4, 4, 5, 6, 6, 6):
        change(read, number)
        assert compiled(x, read).tolist() == program(x, read).tolist()


@pytest.mark.parametrize("way", [way for way in WAYS if "copy" in way and "handed" not in way])
def test_copies_are_the_programs_own(way):
    program, (make, _) = WAYS[way]
    read = make()
    if "__slotnames__" in vars(
        type(read)
    ):  # which Python notes in a class as the first object is copied
        del type(read).__slotnames__

    @tp.compile
    def compiled(x):
        return program(x, read)

    for _ in range(4):
        compiled(tp.ones(2))
    found = compiled.explain()
    assert (len(found.graphs), found.calls, found.breaks) == (1, 3, [])


def of_nothing(net, loss):
    pass


def of_steps(net, loss):
    net.steps += 1


def of_history(net, loss):
    net.history.append(loss)


def of_the_optimizer(net, loss):
    net.optimizer.zero_grad()
    loss.backward()
    net.optimizer.step()
    net.scheduler.step()


class Task(typing.NamedTuple):
    net: Net
    optimizer: tp.optim.Optimizer
    scaler: tp.amp.GradScaler


@pytest.mark.parametrize("change", [of_nothing, of_steps, of_the_optimizer])
def test_what_stands_beside_a_network_makes_no_graphs(change):
    net = Net()
    task = Task(net, net.optimizer, tp.amp.GradScaler("cpu", enabled=False))
    compiled = tp.compile(lambda x: task.net(x).sum())
    for _ in range(20):
        change(net, compiled(tp.ones(3, 2)))
    found = compiled.explain()
    assert (len(found.graphs), found.calls, found.breaks) == (1, 19, [])


@pytest.mark.filterwarnings("ignore:Detected call")  # no optimizer steps before
def test_what_a_scheduler_does_is_done_at_each_call():
    net = Net()

    @tp.compile
    def program(x):
        net.scheduler.step()
        return net(x)

    for number in range(6):
        program(tp.ones(1, 2))
        assert net.scheduler.last_epoch == number + 1


@pytest.mark.parametrize("change", [of_nothing, of_steps, of_history, of_the_optimizer])
@pytest.mark.parametrize("method", [False, True])
def test_attributes_that_are_not_read_make_no_graphs(change, method):
    net = Net()
    compiled = tp.compile(net.forward if method else net)
    for _ in range(20):
        change(net, compiled(tp.ones(3, 2)).sum())
    found = compiled.explain()
    assert (len(found.graphs), found.calls, found.breaks) == (1, 19, [])


def test_new_attributes_may_stand_before_those_of_the_class():
    class Shown(Record):
        number = 1

    read = Shown(other=1)
    compiled = tp.compile(lambda x, read: x * read.number)
    x = tp.ones(1)
    assert [compiled(x, read).item() for _ in range(3)] == [1, 1, 1]
    del read.other
    read.number = 5
    assert compiled(x, read).item() == 5


def test_the_environment_is_read_without_leaving_the_graph(monkeypatch):
    def program(x):
        return x * int(os.environ.get("TENSORPLUG_FACTOR", "1")) + ("TENSORPLUG_TERM" in os.environ)

    compiled = tp.compile(program)
    x = tp.ones(1)
    assert [compiled(x).item() for _ in range(3)] == [1, 1, 1]
    assert (len(compiled.explain().graphs), compiled.explain().calls) == (1, 2)
    monkeypatch.setenv("TENSORPLUG_FACTOR", "3")
    assert [compiled(x).item() for _ in range(2)] == [3, 3]
    monkeypatch.setenv("TENSORPLUG_TERM", "")
    assert compiled(x).item() == 4


def test_context_variables_that_are_put_back_leave_calls_as_they_are():
    inside = ContextVar("inside")

    def program(x):
        token = inside.set([])
        try:
            return x * float(np.sum(np.ones(2)))
        finally:
            inside.reset(token)

    compiled = tp.compile(program)
    for _ in range(4):
        assert compiled(tp.ones(1)).item() == 2
    assert not compiled.explain().breaks
