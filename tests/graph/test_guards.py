"""Whatever of Python's state a program looks at: after a change it does compiled what it does eagerly.

Cases are products: where state is kept, in which container, and how it is changed between the calls.
"""

import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import itertools
import math
import os
import queue
import random
import sys
import threading
import time
import types
import warnings
import weakref

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn

X = tp.linspace(-1, 1, 5)


# --- containers: what is kept, how the number in it is read, and how it is changed in place -----------


class Plain:
    def __init__(self, n):
        self.n = n


class Slots:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n


@dataclasses.dataclass
class Data:
    n: float


@dataclasses.dataclass(slots=True)
class SlottedData:
    n: float


class Property:
    def __init__(self, n):
        self._n = n

    @property
    def n(self):
        return self._n + 1


class Descriptor:
    class Field:
        def __get__(self, instance, owner):
            return instance.table["n"]

        def __set__(self, instance, value):
            instance.table["n"] = value

    n = Field()

    def __init__(self, n):
        self.table = {}
        self.n = n


class Dynamic:
    def __init__(self, n):
        self.hidden = {"n": n}

    def __getattr__(self, name):
        return self.__dict__["hidden"][name]


class Sub(dict):
    pass


class SubList(list):
    pass


class Child(Slots):
    __slots__ = ("other",)

    def __init__(self, n):
        super().__init__(0)
        self.other = n


def _set(name):
    return lambda box, n: setattr(box, name, n)


def _item(key):
    return lambda box, n: box.__setitem__(key, n)


def _filled(box, n):
    box.clear()
    box.add(n)


CONTAINERS = {
    "number": (lambda n: n, lambda box: box, None),
    "list": (lambda n: [n], lambda box: box[0], _item(0)),
    "dict": (lambda n: {"n": n}, lambda box: box["n"], _item("n")),
    "tuple": (lambda n: (n, [n]), lambda box: box[1][0], lambda box, n: box[1].__setitem__(0, n)),
    "set": (lambda n: {n}, lambda box: next(iter(box)), _filled),
    "ordered": (lambda n: collections.OrderedDict(n=n), lambda box: box["n"], _item("n")),
    "default": (
        lambda n: collections.defaultdict(float, n=n), lambda box: box["n"], _item("n"),
    ),
    "counter": (lambda n: collections.Counter(n=n), lambda box: box["n"], _item("n")),
    "deque": (lambda n: collections.deque([n]), lambda box: box[0], _item(0)),
    "chain": (
        lambda n: collections.ChainMap({}, {"n": n}), lambda box: box["n"], _item("n"),
    ),
    "mapping": (
        lambda n: types.MappingProxyType({"n": [n]}), lambda box: box["n"][0],
        lambda box, n: box["n"].__setitem__(0, n),
    ),
    "namespace": (lambda n: types.SimpleNamespace(n=n), lambda box: box.n, _set("n")),
    "subclass of dict": (lambda n: Sub(n=n), lambda box: box["n"], _item("n")),
    "subclass of list": (lambda n: SubList([n]), lambda box: box[0], _item(0)),
    "object": (Plain, lambda box: box.n, _set("n")),
    "slots": (Slots, lambda box: box.n, _set("n")),
    "slots of a subclass": (Child, lambda box: box.other, _set("other")),
    "dataclass": (Data, lambda box: box.n, _set("n")),
    "dataclass with slots": (SlottedData, lambda box: box.n, _set("n")),
    "property": (Property, lambda box: box.n, _set("_n")),
    "descriptor": (Descriptor, lambda box: box.n, _set("n")),
    "getattr": (Dynamic, lambda box: box.n, lambda box, n: box.hidden.__setitem__("n", n)),
    "array": (lambda n: np.array([n, 1.0]), lambda box: float(box[0]), _item(0)),
    "scalar of numpy": (np.float64, float, None),
    "bytes": (
        lambda n: bytearray([int(n * 4)]), lambda box: box[0],
        lambda box, n: box.__setitem__(0, int(n * 4)),
    ),
    "tensor": (lambda n: tp.tensor(n), lambda box: box, lambda box, n: box.fill_(n)),
    "list of tensors": (
        lambda n: [tp.tensor(n)], lambda box: box[0],
        lambda box, n: box.__setitem__(0, tp.tensor(n)),
    ),
    "iterator": (lambda n: (iter([1, 2]), [n])[1], lambda box: box[0], _item(0)),
    "partial": (
        lambda n: functools.partial(lambda a: a[0], [n]), lambda box: box(),
        lambda box, n: box.args[0].__setitem__(0, n),
    ),
    "list of dataclasses in a dict": (
        lambda n: {"a": [Data(n)]}, lambda box: box["a"][0].n, lambda box, n: setattr(box["a"][0], "n", n),
    ),
    "deep": (
        lambda n: {"a": [{"b": [[{"c": [n]}]]}]}, lambda box: box["a"][0]["b"][0][0]["c"][0],
        lambda box, n: box["a"][0]["b"][0][0]["c"].__setitem__(0, n),
    ),
    "weakref": (
        lambda n: [weakref.ref(keep(Plain(n)))], lambda box: box[0]().n,
        lambda box, n: setattr(box[0](), "n", n),
    ),
    "thread local": (
        lambda n: local(n), lambda box: box.n, _set("n"),
    ),
    "context variable": (
        lambda n: variable(n), lambda box: box.get(), lambda box, n: box.set(n),
    ),
    "cached function": (
        lambda n: types.SimpleNamespace(f=functools.lru_cache(lambda: n)), lambda box: box.f(),
        lambda box, n: setattr(box, "f", functools.lru_cache(lambda: n)),
    ),
}  # fmt: skip

KEPT = []


def keep(value):
    KEPT.append(value)
    return value


def local(n):
    made = threading.local()
    made.n = n
    return made


def variable(n):
    made = contextvars.ContextVar("n")
    made.set(n)
    return made


# --- places: a program that reads from one, and how to put something else there -------------------------

GLOBAL = None


def in_global(read):
    def program(x):
        return x * read(GLOBAL)

    return program, functools.partial(globals().__setitem__, "GLOBAL")


def in_closure(read):
    box = None

    def program(x):
        return x * read(box)

    def put(value):
        nonlocal box
        box = value

    return program, put


def in_default(read):
    def program(x, box=None):
        return x * read(box)

    return program, lambda value: setattr(program, "__defaults__", (value,))


def in_keyword_default(read):
    def program(x, *, box=None):
        return x * read(box)

    return program, lambda value: setattr(program, "__kwdefaults__", {"box": value})


def in_helper_default(read):
    def helper(box=None):
        return read(box)

    def program(x):
        return x * helper()

    return program, lambda value: setattr(helper, "__defaults__", (value,))


def in_helper_keyword_default(read):
    def helper(*, box=None):
        return read(box)

    def program(x):
        return x * helper()

    return program, lambda value: setattr(helper, "__kwdefaults__", {"box": value})


def in_function_attribute(read):
    def program(x):
        return x * read(program.box)

    return program, functools.partial(setattr, program, "box")


def in_module_attribute(read):
    class Program(nn.Module):
        def forward(self, x):
            return x * read(self.box)

    made = Program()
    return made, functools.partial(setattr, made, "box")


def in_submodule(read):
    class Part(nn.Module):
        def forward(self, x):
            return x * read(self.box)

    made = nn.Sequential(nn.Identity(), Part())
    return made, functools.partial(setattr, made[1], "box")


def in_class(read):
    class Program(nn.Module):
        def forward(self, x):
            return x * read(self.box)

    return Program(), functools.partial(setattr, Program, "box")


def in_base_class(read):
    class Base:
        pass

    class Program(Base, nn.Module):
        def forward(self, x):
            return x * read(type(self).box)

    return Program(), functools.partial(setattr, Base, "box")


def in_python_module(read):
    module = types.ModuleType("a_module_of_tests")

    def program(x):
        return x * read(module.box)

    return program, functools.partial(setattr, module, "box")


def in_object(read):
    holder = Plain(0)

    def program(x):
        return x * read(holder.box)

    return program, functools.partial(setattr, holder, "box")


def in_slots(read):
    holder = Slots(0)

    def program(x):
        return x * read(holder.n)

    return program, functools.partial(setattr, holder, "n")


def in_method(read):
    class Holder:
        def get(self):
            return read(self.box)

    holder = Holder()

    def program(x):
        return x * holder.get()

    return program, functools.partial(setattr, holder, "box")


def in_bound_method(read):
    class Holder:
        def run(self, x):
            return x * read(self.box)

    holder = Holder()
    return holder.run, functools.partial(setattr, holder, "box")


def in_partial(read):
    table = [None]

    def run(table, x):
        return x * read(table[0])

    return functools.partial(run, table), functools.partial(table.__setitem__, 0)


def in_generator(read):
    table = [None]

    def numbers():
        yield read(table[0])

    def program(x):
        return x * sum(numbers())

    return program, functools.partial(table.__setitem__, 0)


def in_lambda_of_list(read):
    table = [None]

    def program(x):
        numbers = map(lambda box: read(box), table)  # noqa: C417  a function that C calls
        return x * next(numbers)

    return program, functools.partial(table.__setitem__, 0)


PLACES = [
    in_global, in_closure, in_default, in_keyword_default, in_helper_default, in_helper_keyword_default,
    in_function_attribute, in_module_attribute, in_submodule, in_class, in_base_class, in_python_module,
    in_object, in_slots, in_method, in_bound_method, in_partial, in_generator, in_lambda_of_list,
]  # fmt: skip


def alike(compiled, program):
    wanted = program(X)
    made = compiled(X)
    assert np.array_equal(made.detach().numpy(), wanted.detach().numpy()), (made, wanted)


@pytest.mark.filterwarnings("ignore:functools.partial:FutureWarning")  # of 3.13 on, in a class
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_state(place, container):
    make, read, change = CONTAINERS[container]
    program, put = place(read)
    put(make(0.5))
    compiled = tp.compile(program)
    for _ in range(2):
        alike(compiled, program)
    box = make(2.0)
    put(box)
    for _ in range(2):
        alike(compiled, program)
    if change is not None:
        for n in (0.75, 2.0, 1.0, 1.0):
            change(box, n)
            alike(compiled, program)
    put(make(1.0))  # equal, but another one
    alike(compiled, program)
    box = make(1.0)
    put(box)
    alike(compiled, program)
    if change is not None:
        change(box, 3.0)
        alike(compiled, program)


# --- what is done to programs themselves ----------------------------------------------------------------


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


class Doubler(nn.Module):
    factor = 2.0

    def forward(self, x):
        return self.scaled(x)

    def scaled(self, x):
        return x * self.factor


class Tripler(Doubler):
    factor = 3.0

    def scaled(self, x):
        return super().scaled(x) + 1


def patched_method(monkeypatch):
    yield Doubler()
    monkeypatch.setattr(Doubler, "scaled", lambda self, x: x - self.factor)


def patched_method_of_instance(monkeypatch):
    made = Doubler()
    yield made
    made.scaled = lambda x: x + 10


def patched_forward_of_library(monkeypatch):
    yield nn.Sequential(nn.ReLU(), nn.Tanh())
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, x: x * 5)


def other_class(monkeypatch):
    made = Doubler()
    yield made
    made.__class__ = Tripler


def other_base(monkeypatch):
    class Base:
        def scaled(self, x):
            return x * 3

    class Other:
        def scaled(self, x):
            return x * 4

    class Program(Base):
        def __call__(self, x):
            return self.scaled(x)

    made = Program()
    yield made.__call__
    Program.__bases__ = (Other,)


def deleted_attribute(monkeypatch):
    made = Doubler()
    made.factor = 9.0
    yield made
    del made.factor


def deleted_and_missing(monkeypatch):
    made = Doubler()
    made.extra = 1.0
    made.scaled = lambda x: x * getattr(made, "extra", 7.0)
    yield made
    del made.extra


def added_attribute(monkeypatch):
    made = Doubler()
    made.scaled = lambda x: x * (5.0 if hasattr(made, "later") else 7.0)
    yield made
    made.later = None


def other_code(monkeypatch):
    def helper(x):
        return x * 2

    yield lambda x: helper(x)
    helper.__code__ = (lambda x: x * 3).__code__


def patched_builtin(monkeypatch):
    yield lambda x: x * len([1, 2])
    monkeypatch.setitem(globals(), "len", lambda value: 7)


def patched_module_function(monkeypatch):
    yield lambda x: x * math.sqrt(4.0)
    monkeypatch.setattr(math, "sqrt", lambda value: 11.0)


def patched_library_function(monkeypatch):
    yield lambda x: nn.functional.relu(x) + tp.exp(x)
    monkeypatch.setattr(nn.functional, "relu", lambda x: x * 13.0)


def training_flag(monkeypatch):
    made = nn.Sequential(Doubler(), nn.Dropout(1.0))
    yield made
    made.eval()


def forward_hook(monkeypatch):
    made = nn.Sequential(Doubler())
    yield made
    made[0].register_forward_hook(lambda module, args, out: out + 1)


def forward_pre_hook_removed(monkeypatch):
    made = nn.Sequential(Doubler())
    handle = made[0].register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    yield made
    handle.remove()


def global_hook(monkeypatch):
    made = nn.Sequential(Doubler())
    yield lambda x: made(x)  # what compiles a module is one itself
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out - 1)
    monkeypatch.callbacks.append(handle.remove)


def replaced_submodule(monkeypatch):
    made = nn.Sequential(Doubler(), nn.ReLU())
    yield made
    made[1] = nn.Tanh()


def appended_submodule(monkeypatch):
    made = nn.Sequential(Doubler())
    yield made
    made.append(nn.Tanh())


def replaced_parameter(monkeypatch):
    made = nn.Linear(5, 5)
    yield made
    made.weight = nn.Parameter(tp.ones(5, 5))


def data_of_a_parameter(monkeypatch):
    made = nn.Linear(5, 5)
    yield made
    made.weight.data = tp.ones(5, 5)


def loaded_state(monkeypatch):
    made = nn.Linear(5, 5)
    yield made
    made.load_state_dict({"weight": tp.ones(5, 5), "bias": tp.zeros(5)})


def replaced_buffer(monkeypatch):
    made = nn.Module()
    made.register_buffer("b", tp.ones(5))
    made.forward = lambda x: x * made.b
    yield made
    made.b = tp.full((5,), 4.0)


def parametrized(monkeypatch):
    made = nn.Linear(5, 5)
    yield made
    nn.utils.parametrizations.weight_norm(made)
    made.parametrizations.weight.original0.data.mul_(3)


def member_of_enum(monkeypatch):
    table = types.SimpleNamespace(mode=Mode.ONE)
    yield lambda x: x * 2 if table.mode is Mode.ONE else x * 3
    table.mode = Mode.TWO


def environment(monkeypatch):
    monkeypatch.setenv("A_VARIABLE_OF_TESTS", "2")
    yield lambda x: x * float(os.environ["A_VARIABLE_OF_TESTS"])
    monkeypatch.setenv("A_VARIABLE_OF_TESTS", "3")


def environment_by_getenv(monkeypatch):
    monkeypatch.setenv("A_VARIABLE_OF_TESTS", "2")
    yield lambda x: x * float(os.getenv("A_VARIABLE_OF_TESTS"))
    monkeypatch.setenv("A_VARIABLE_OF_TESTS", "3")


def file_by_pathlib(monkeypatch):
    monkeypatch.path.write_text("2")
    yield lambda x: x * float(monkeypatch.path.read_text())
    monkeypatch.path.write_text("3")


def file_by_open(monkeypatch):
    monkeypatch.path.write_text("2")

    def program(x):
        with monkeypatch.path.open() as file:
            return x * float(file.read())

    yield program
    monkeypatch.path.write_text("3")


def file_by_numpy(monkeypatch):
    np.save(monkeypatch.path.with_suffix(".npy"), np.ones(5))
    yield lambda x: x * float(np.load(monkeypatch.path.with_suffix(".npy"))[0])
    np.save(monkeypatch.path.with_suffix(".npy"), np.full(5, 3.0))


def file_that_exists(monkeypatch):
    yield lambda x: x * (2 if monkeypatch.path.exists() else 3)
    monkeypatch.path.write_text("2")


def file_is_open(monkeypatch):
    monkeypatch.path.write_text("2" * 90)
    file = monkeypatch.path.open()
    yield lambda x: x * file.tell() + x * float(file.read(1))
    monkeypatch.callbacks.append(file.close)


def default_dtype(monkeypatch):
    yield lambda x: x * tp.ones(5)
    tp.set_default_dtype(tp.float64)
    monkeypatch.callbacks.append(lambda: tp.set_default_dtype(tp.float32))


def gradients_off(monkeypatch):
    yield lambda x: x * (2 if tp.is_grad_enabled() else 3)
    before = tp.is_grad_enabled()
    tp.set_grad_enabled(not before)
    monkeypatch.callbacks.append(lambda: tp.set_grad_enabled(before))


def random_of_python(monkeypatch):
    stream = random.Random(0)

    def program(x):
        stream.seed(monkeypatch.seed)
        return x * stream.random()

    monkeypatch.seed = 1
    yield program
    monkeypatch.seed = 2


def random_of_numpy(monkeypatch):
    def program(x):
        return x * float(np.random.default_rng(monkeypatch.seed).random())

    monkeypatch.seed = 1
    yield program
    monkeypatch.seed = 2


def iterator(monkeypatch):
    numbers = itertools.cycle([1.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    yield lambda x: x * next(numbers)


def generator(monkeypatch):
    def count():
        while True:
            yield monkeypatch.seed

    numbers = count()
    monkeypatch.seed = 2.0
    yield lambda x: x * next(numbers)
    monkeypatch.seed = 3.0


def queue_of_numbers(monkeypatch):
    numbers = queue.Queue()
    for number in (1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0):
        numbers.put(number)
    yield lambda x: x * numbers.get()


def event(monkeypatch):
    flag = threading.Event()
    yield lambda x: x * (2 if flag.is_set() else 3)
    flag.set()


def in_another_thread(monkeypatch):
    table = [2.0]

    def program(x):
        found = []
        worker = threading.Thread(target=lambda: found.append(x * table[0]))
        worker.start()
        worker.join()
        return found[0]

    yield program
    table[0] = 3.0


def coroutine(monkeypatch):
    table = [2.0]

    async def scaled(x):
        return x * table[0]

    def program(x):
        try:
            scaled(x).send(None)
        except StopIteration as end:
            return end.value

    yield program
    table[0] = 3.0


def length_of_a_class(monkeypatch):
    class Sized:
        size = 2

        def __len__(self):
            return self.size

        def __bool__(self):
            return self.size > 2

        def __contains__(self, item):
            return item < self.size

    made = Sized()
    yield lambda x: x * len(made) if made else x * (2 in made) - 1
    Sized.size = 4


def metaclass(monkeypatch):
    class Meta(type):
        factor = 2.0

    class Kind(metaclass=Meta):
        pass

    yield lambda x: x * Kind.factor
    Meta.factor = 3.0


def imported_within(monkeypatch):
    module = types.ModuleType("a_module_of_tests")
    module.n = 2.0
    monkeypatch.setitem(sys.modules, "a_module_of_tests", module)

    def program(x):
        import a_module_of_tests

        return x * a_module_of_tests.n

    yield program
    module.n = 3.0


def dotted_modules(monkeypatch):
    outer, inner = types.ModuleType("outer"), types.ModuleType("inner")
    outer.inner, inner.n = inner, 2.0
    yield lambda x: x * outer.inner.n
    inner.n = 3.0


CHANGES = [
    patched_method, patched_method_of_instance, patched_forward_of_library, other_class, other_base,
    deleted_attribute, deleted_and_missing, added_attribute, other_code, patched_builtin,
    patched_module_function, patched_library_function, training_flag, forward_hook,
    forward_pre_hook_removed, global_hook, replaced_submodule, appended_submodule, replaced_parameter,
    data_of_a_parameter, loaded_state, replaced_buffer, parametrized, member_of_enum, environment,
    environment_by_getenv, file_by_pathlib, file_by_open, file_by_numpy, file_that_exists, file_is_open,
    default_dtype, gradients_off, random_of_python, random_of_numpy, iterator, generator,
    queue_of_numbers, event, in_another_thread, coroutine, length_of_a_class, metaclass, imported_within,
    dotted_modules,
]  # fmt: skip

#: Where each call of the program moves on what the next one sees: a twin of it is called instead.
MOVING = (iterator, generator, queue_of_numbers, file_is_open)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changes(change, monkeypatch, tmp_path):
    monkeypatch.path = tmp_path / "a"
    monkeypatch.callbacks = []
    steps = [change(monkeypatch) for _ in range(2 if change in MOVING else 1)]
    programs = [next(step) for step in steps]
    compiled = tp.compile(programs[0])
    try:
        for _ in range(3):
            alike(compiled, programs[-1])
        for step in steps:
            next(step, None)
        for _ in range(3):
            alike(compiled, programs[-1])
    finally:
        for callback in monkeypatch.callbacks:
            callback()


def test_a_planted_fault_is_found(monkeypatch):
    from tensorplug.graph import records, state

    monkeypatch.setattr(records, "alike", lambda now, held: now == held)
    with pytest.raises(AssertionError):
        test_state(in_object, "list")
    monkeypatch.setattr(state, "of_slots", lambda value, slots: [type(value), 0])
    with pytest.raises(AssertionError):
        test_state(in_global, "slots")


@pytest.mark.parametrize("size", [None, 4])
def test_what_a_cached_function_keeps(size):
    @functools.lru_cache(size)
    def total(size):
        return tp.zeros(size)

    def adds(x):
        total(3).add_(1)
        return x + total(3)

    compiled = tp.compile(adds)
    found = [[float(run(tp.zeros(3))[0]) for _ in range(6)] for run in (adds, compiled)]
    assert found == [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]]
    total.cache_clear()
    assert [float(compiled(tp.zeros(3))[0]) for _ in range(6)] == found[0]
    assert compiled.explain().calls  # once it is there, graphs run


def test_a_variable_that_comes_and_goes(alike):
    def program(wrap):
        def function(x, scaled):
            return x * factor if scaled else x + 1

        function = wrap(function)
        for number in (2.0, 2.0, 3.0):
            factor = number
            yield function(X, False)
            yield function(X, True)
        del factor
        for _ in range(3):
            yield function(X, False)
        factor = 4.0
        yield function(X, True)

    alike(program)


def test_globals_in_a_table_of_a_class_of_its_own(alike):
    class Table(dict):
        pass

    def program(wrap):
        table = Table(factor=2.0)
        function = wrap(types.FunctionType((lambda x: x * factor).__code__, table))  # noqa: F821
        for number in (2.0, 2.0, 3.0, 3.0):
            table["factor"] = number
            yield function(X)

    alike(program)


def test_warnings_are_raised_each_time():
    def warns(x):
        warnings.warn("look", UserWarning, stacklevel=1)
        return x + 1

    compiled = tp.compile(warns)
    for _ in range(4):
        with pytest.warns(UserWarning, match="look"):
            compiled(tp.ones(2))


def test_what_a_device_calls_is_none_of_the_programs(monkeypatch):
    runtime = type(tp.ones(1)._key.runtime)
    asked = runtime.unavailable_reason

    def reason(self):
        def look():
            return time.perf_counter() and np.ceil  # neither may be in a captured program

        return look() and asked(self)

    monkeypatch.setattr(runtime, "unavailable_reason", reason)

    @tp.compile
    def program(x):
        with tp.autocast("cpu", tp.bfloat16):
            return x @ weight + tp.arange(3.0)

    weight = tp.ones(2, 3, requires_grad=True)
    for _ in range(3):
        program(tp.ones(4, 2)).sum().backward()
    found = program.explain()
    assert not found.breaks
    assert found.calls == 2


class Entry:
    def __init__(self, number):
        self.number = number


@pytest.mark.parametrize("what", ["modules", "objects"])
def test_how_much_a_program_may_depend_on(what, monkeypatch):
    from tensorplug.graph import state

    monkeypatch.setattr(state, "LIMIT", 1000)
    layers = nn.Sequential(
        *[nn.ReLU() for _ in range(200)]
    )  # some 3,000 objects, which count apart
    entries = [Entry(number) for number in range(2000 if what == "objects" else 100)]

    @tp.compile
    def program(x):
        return layers(x) + entries[1].number

    for _ in range(3):
        assert program(tp.ones(2)).tolist() == [2, 2]
    found = program.explain()
    assert any("depends on more than" in reason for reason, _ in found.breaks) == (
        what == "objects"
    )
    entries[1].number = 5
    assert program(tp.ones(2)).tolist() == [6, 6]


@pytest.mark.parametrize("fails", [False, True])
def test_what_follows_an_op_is_watched(fails):
    """Nothing watches within an op: what the program does behind it, or after it failed, still counts."""
    times = []

    @tp.compile
    def program(x):
        x = x.exp()
        if fails:
            with contextlib.suppress(RuntimeError):
                x.reshape(5)
        return x + time.perf_counter()

    for _ in range(5):
        times += program(tp.zeros(1, dtype=tp.float64)).tolist()
    assert len(set(times)) == 5
    assert ["perf_counter" in reason for reason, _ in program.explain().breaks] == [True]
    assert sys.getprofile() is None


def test_profilers_see_what_ops_do_while_a_graph_is_captured():
    seen = set()
    sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_name))
    try:
        tp.graph.capture(lambda x: nn.functional.linear(x, x).sum(), tp.ones(2, 2))
    finally:
        sys.setprofile(None)
    assert "_passed_on" in seen


def test_asking_for_a_device_that_is_not_there_is_no_effect():
    def program(x):
        known = getattr(tp.cuda, "is_current_stream_capturing", None) or tp.cuda.is_available
        return x * 2 + 1 if not known() else x

    compiled = tp.compile(program)
    for _ in range(3):
        alike(compiled, program)
    assert not compiled.explain().breaks
