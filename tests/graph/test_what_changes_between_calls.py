"""What may change between two calls of a compiled program while nothing that it names is another object.

Cases are generators: each yields a program and what makes its arguments, goes on to a change, and yields
again. The compiled program is called three times for each, beside the program as it is: results, what is
known of them, gradients, what is left in the arguments and errors have to be those of the program.
"""

import abc
import array
import ctypes
import dataclasses
import functools
import itertools
import logging
import types
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.contexts import thread

numbers = itertools.count()


def plain():
    return tp.linspace(-1, 1, 5)


def leaf():
    return plain().requires_grad_()


def made():
    return leaf() * 1


def shown(run, makers):
    """Return all that a call shows."""
    args = [make() if isinstance(make, types.FunctionType) else make for make in makers]
    tensors = [arg for arg in args if isinstance(arg, tp.Tensor)]
    try:
        result = run(*args)
    except (RuntimeError, TypeError, ValueError) as error:
        return repr(error)
    found = [str(result.dtype), result.stride(), result.requires_grad, result.is_leaf]
    if result.requires_grad:
        result.sum().backward()
        found += [None if not t.is_leaf or t.grad is None else t.grad.tolist() for t in tensors]
    return repr([*found, result.tolist(), *[tensor.tolist() for tensor in tensors]])


# --- tensors: what programs ask of arguments, and of state ----------------------------------------------


def retained():
    tensor = made()
    tensor.retain_grad()
    return tensor


def written():
    return plain().add_(1)


def in_inference():
    with tp.inference_mode():
        return plain()


def in_shared_memory():
    return plain().share_memory_()


def a_view():
    return tp.linspace(-1, 1, 7)[1:6]


def conjugate():
    return tp.complex(plain(), plain()).conj()


ASKED = {
    "is_leaf": (lambda x: x.is_leaf, leaf, made),
    "retains_grad": (lambda x: x.retains_grad, made, retained),
    "grad_fn": (lambda x: x.grad_fn is None, leaf, made),
    "_version": (lambda x: x._version, plain, written),
    "_base": (lambda x: x._base is None, plain, a_view),
    "_is_view": (lambda x: x._is_view(), plain, a_view),
    "storage_offset": (lambda x: x.storage_offset(), plain, a_view),
    "is_inference": (lambda x: x.is_inference(), plain, in_inference),
    "is_shared": (lambda x: x.is_shared(), plain, in_shared_memory),
    "is_conj": (lambda x: x.is_conj(), lambda: tp.complex(plain(), plain()), conjugate),
    "class": (lambda x: type(x) is nn.Parameter, leaf, lambda: nn.Parameter(plain())),
    "attribute": (lambda x: getattr(x, "tag", 0), plain, lambda: tagged(plain())),
}  # fmt: skip


def tagged(tensor):
    tensor.tag = 3
    return tensor


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_asked_of_an_argument(name, turned):
    ask, *makers = ASKED[name]
    compare(lambda x: x * (2.0 + ask(x)), [[(make,)] for make in makers[:: -1 if turned else 1]])


def set_data(make):
    def change(tensor):
        tensor.data = make()

    return change


class Marked(tp.Tensor):
    pass


def of_another_class(tensor):
    tensor.__class__ = Marked


CHANGED = {
    "requires_grad": (lambda t: t.requires_grad, lambda t: t.requires_grad_()),
    "shape": (lambda t: t.shape[0] + 10 * t.ndim + len(t), set_data(lambda: tp.ones(2, 3, 4))),
    "strides": (lambda t: t.stride(0), set_data(lambda: tp.ones(4, 3).t())),
    "contiguous": (lambda t: t.is_contiguous(), set_data(lambda: tp.ones(4, 3).t())),
    "dtype": (lambda t: len(str(t.dtype)), set_data(lambda: tp.ones(3, 4, dtype=tp.int16))),
    "is_leaf": (lambda t: t.is_leaf, lambda t: t.mul_(tp.ones(3, 4, requires_grad=True))),
    "class": (lambda t: type(t) is Marked, of_another_class),
    "attribute": (lambda t: getattr(t, "tag", 0), tagged),
    "turned": (lambda t: t.shape[0], lambda t: t.t_()),
    "value": (lambda t: t.sum().item(), lambda t: t.fill_(3)),
}  # fmt: skip


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("name", CHANGED)
def test_what_is_asked_of_state(name, used):
    ask, change = CHANGED[name]
    state = tp.ones(3, 4)

    def program(x):
        scaled = x * (2.0 + ask(state))
        return scaled + state.detach().sum() if used else scaled

    compare(program, [[(plain,), (leaf,)], functools.partial(change, state), [(plain,), (leaf,)]])


def compare(program, steps):
    """Call a program and its compiled form for arguments of each step; a step may be a change."""
    compiled = tp.compile(program)
    for step in steps:
        if callable(step):
            step()
            continue
        for makers in step:
            for _ in range(3):
                assert shown(compiled, makers) == shown(program, makers)


# --- settings -------------------------------------------------------------------------------------------

SETTINGS = {
    "determinism": (tp.are_deterministic_algorithms_enabled, tp.use_deterministic_algorithms, True),
    "how determinism is checked": (tp.get_deterministic_debug_mode, tp.set_deterministic_debug_mode, 1),
    "precision": (lambda: len(tp.get_float32_matmul_precision()), tp.set_float32_matmul_precision, "high"),
    "threads": (tp.get_num_threads, tp.set_num_threads, 7),
    "threads between ops": (tp.get_num_interop_threads, tp.set_num_interop_threads, 3),
    "warnings": (tp.is_warn_always_enabled, tp.set_warn_always, True),
    "anomalies": (tp.is_anomaly_enabled, tp.autograd.set_detect_anomaly, True),
    "dtype of autocast": (
        lambda: tp.get_autocast_dtype("cpu").itemsize + (tp.get_autocast_dtype("cpu") is tp.float16),
        lambda dtype: tp.set_autocast_dtype("cpu", dtype), tp.float16,
    ),
    "dtype of tensors": (lambda: tp.get_default_dtype().itemsize, tp.set_default_dtype, tp.float64),
    "gradients": (tp.is_grad_enabled, tp.set_grad_enabled, False),
}  # fmt: skip
BEFORE = {
    "precision": "highest", "threads": tp.get_num_threads(), "threads between ops": 1,
    "dtype of autocast": tp.bfloat16, "dtype of tensors": tp.float32, "gradients": True,
    "how determinism is checked": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def autocast_as_it_was():
    before = thread.autocast
    yield
    thread.autocast = before


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name):
    read, put, other = SETTINGS[name]
    before = BEFORE.get(name, False)
    each = [(plain,), (leaf,)]
    try:
        compare(
            lambda x: x * (1.0 + read()),
            [each, lambda: put(other), each, lambda: put(before), each],
        )
    finally:
        put(before)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "gradients"])
def test_a_program_that_sets_what_it_finds(name):
    _, put, other = SETTINGS[name]
    before = BEFORE.get(name, False)

    def program(x):
        put(other)
        return x * 2 + 1

    compiled = tp.compile(program)
    try:
        for _ in range(3):
            put(before)
            compiled(plain())
            read = SETTINGS[name][0]()
            program(plain())
            assert read == SETTINGS[name][0]()
    finally:
        put(before)


def test_autocast_takes_the_dtype_that_was_set():
    def program(x):
        with tp.autocast("cpu"):
            return x @ tp.ones(5, 5)

    def put(dtype):
        return lambda: tp.set_autocast_dtype("cpu", dtype)

    each = [(plain,)]
    try:
        compare(program, [each, put(tp.float16), each, put(tp.bfloat16), each])
    finally:
        tp.set_autocast_dtype("cpu", tp.bfloat16)


# --- memory ---------------------------------------------------------------------------------------------

SHARED = {
    "from_numpy": tp.from_numpy,
    "as_tensor": tp.as_tensor,
    "asarray": tp.asarray,
    "from_dlpack": tp.from_dlpack,
    "frombuffer": lambda array: tp.frombuffer(array, dtype=tp.float32),
}


@pytest.mark.parametrize("name", SHARED)
def test_state_over_memory_that_others_write(name):
    memory = np.zeros(5, "float32")
    state = SHARED[name](memory)
    each = [(plain,), (leaf,)]
    steps = [each, lambda: memory.fill(1), each, lambda: memory.fill(2), each]
    compare(lambda x: x + state.exp(), steps)


@pytest.mark.parametrize(
    "places", list(itertools.product([slice(0, 5), slice(1, 6)], repeat=2)), ids=str
)
@pytest.mark.parametrize("alone", [False, True])
def test_arguments_over_one_memory(places, alone):
    memory = np.zeros(6, "float32")
    first, second = places

    def program(x, y):
        x.add_(1)
        return x * y

    def one():
        memory[:] = range(6)
        return tp.from_numpy(memory[first])

    def other():
        return tp.from_numpy(memory[second])

    def apart():
        return plain()

    compare(
        program, [[(plain, apart)] * (not alone), [(one, other)], [(plain, apart)], [(one, other)]]
    )


def test_state_and_an_argument_over_one_memory():
    memory = np.zeros(6, "float32")
    state = tp.from_numpy(memory[:5])

    def program(x):
        state.add_(1)
        return x * state

    def start():
        memory[:] = range(6)
        return plain()

    def other():
        memory[:] = range(6)
        return tp.from_numpy(memory[1:])

    compare(program, [[(start,)], [(other,)], [(start,)], [(other,)]])


def test_state_that_comes_to_show_one_memory():
    a, b = plain(), plain()

    def program(x):
        a.add_(x)
        return b * 1

    def start():
        for state in (a, b):
            state.copy_(tp.arange(5.0))
        return plain()

    def join():
        b.data = a.data

    def part():
        b.data = plain()

    compare(program, [[(start,)], join, [(start,)], part, [(start,)]])


# --- objects --------------------------------------------------------------------------------------------


class Thing:
    n = 2.0


def with_thing(make, read, change):
    thing = Thing()
    box = make(thing)
    yield lambda x: x * read(box)
    change(thing, box)


def registered(thing, box):
    box.register(Thing)


class Abstract(abc.ABC):  # noqa: B024  classes are registered
    pass


def louder(thing, box):
    box.setLevel(logging.DEBUG)


def set_n(thing, box):
    thing.n = 3.0


OBJECTS = {
    "values of a dict": (lambda t: {"a": t}.values(), lambda b: next(iter(b)).n, set_n),
    "keys of a dict": (lambda t: t.__dict__.keys(), lambda b: 1 + len(b), set_n),
    "items of a dict": (lambda t: t.__dict__.items(), lambda b: 1 + len(b), set_n),
    "weak proxy": (weakref.proxy, lambda b: b.n, set_n),
    "weak set": (
        lambda t: weakref.WeakSet([t]), lambda b: 1 + len(b), lambda t, b: b.add(kept(Thing())),
    ),
    "array": (lambda t: array.array("d", [2.0]), lambda b: b[0], lambda t, b: b.__setitem__(0, 3.0)),
    "view of memory": (
        lambda t: memoryview(bytearray([2])), lambda b: b[0], lambda t, b: b.__setitem__(0, 3),
    ),
    "number of C": (lambda t: ctypes.c_int(2), lambda b: b.value, lambda t, b: setattr(b, "value", 3)),
    "level of a logger": (
        lambda t: logging.getLogger(f"tests{next(numbers)}"),
        lambda b: 1 + b.isEnabledFor(logging.DEBUG), louder,
    ),
    "effective level of a logger": (
        lambda t: logging.getLogger(f"tests{next(numbers)}"), lambda b: b.getEffectiveLevel(), louder,
    ),
    "virtual subclass": (
        lambda t: type("Abstract", (Abstract,), {}), lambda b: 1 + issubclass(Thing, b), registered,
    ),
    "object of a virtual subclass": (
        lambda t: type("Abstract", (Abstract,), {}), lambda b: 1 + isinstance(KEPT[0], b), registered,
    ),
    "attribute of a module by name": (
        lambda t: module(n=2.0), lambda b: getattr(b, "n"), lambda t, b: setattr(b, "n", 3.0),  # noqa: B009
    ),
    "module in a list": (
        lambda t: [module(n=2.0)], lambda b: b[0].n, lambda t, b: setattr(b[0], "n", 3.0),
    ),
}  # fmt: skip
KEPT = [Thing()]


def kept(value):
    KEPT.append(value)
    return value


def module(**names):
    found = types.ModuleType("a_module_of_tests")
    vars(found).update(names)
    return found


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name):
    steps = with_thing(*OBJECTS[name])
    each = [(plain,), (leaf,)]
    compare(next(steps), [each, lambda: next(steps, None), each])


class Pair(NamedTuple):
    loss: float
    other: list


@dataclasses.dataclass
class Task:
    loss: float
    others: list = dataclasses.field(default_factory=list)


@pytest.mark.parametrize("kind", [Pair, Task])
def test_classes_of_pythons_modules_are_looked_through(kind):
    task = kind(2.0, [3.0])
    compiled = tp.compile(lambda x: x * task.loss + task[1][0] if kind is Pair else x * task.loss)
    for _ in range(3):
        compiled(plain())
    assert compiled.explain().calls == 2


NESTINGS = {
    "itself": lambda thing: thing,
    "in a list": lambda thing: [thing],
    "in a tuple": lambda thing: (1, (thing,)),
    "in a dict": lambda thing: {"a": thing},
    "as a name": lambda thing: {thing: 1},
    "deep": lambda thing: {"a": [({"b": thing},)]},
}


def innermost(value):
    while not isinstance(value, Thing):
        value = list(value)[-1] if not isinstance(value, dict) else [*value, *value.values()]
        value = next(item for item in reversed(value) if not isinstance(item, (int, str)))
    return value


@pytest.mark.parametrize("name", NESTINGS)
def test_an_object_among_arguments(name):
    thing = Thing()
    given = NESTINGS[name](thing)
    each = [(plain, given), (leaf, given)]
    compare(lambda x, box: x * innermost(box).n, [each, lambda: set_n(thing, None), each])


NAMES = [1, True, 1.0, "a", b"a", None, 0.0, -0.0, (1,), (True,), float("inf")]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_in_a_dict(name):
    def program(x, table):
        (name,) = table
        return x * (1.0 + len(repr(name)))

    each = [(plain, {name: 2.0})]
    compare(program, [each, *[[(plain, {other: 2.0})] for other in NAMES], each])


# --- ops of others --------------------------------------------------------------------------------------


def custom():
    table = [2.0]

    @tp.library.custom_op(f"tests_of_guards::op{next(numbers)}", mutates_args=())
    def scaled(x: tp.Tensor) -> tp.Tensor:
        return x * table[0]

    return scaled, table


def test_what_the_function_of_an_op_looks_at():
    op, table = custom()
    compare(lambda x: op(x) + 1, [[(plain,)], lambda: table.insert(0, 5.0), [(plain,)]])


def test_a_kernel_that_comes_later():
    op, _ = custom()

    def come():
        op.register_kernel("cpu")(lambda x: x * 7)

    compare(lambda x: op(x) + 1, [[(plain,)], come, [(plain,)]])


def test_a_derivative_that_is_replaced():
    op, _ = custom()
    op.register_autograd(lambda ctx, g: g * 2)

    def come():
        op.register_autograd(lambda ctx, g: g * 50)

    compare(lambda x: op(x) + 1, [[(leaf,)], come, [(leaf,)]])


def test_an_op_of_state_alone_is_called_each_time():
    op, table = custom()
    state = plain()
    compare(lambda x: op(state) + x, [[(plain,)], lambda: table.insert(0, 5.0), [(plain,)]])


# --- the interpreter ------------------------------------------------------------------------------------


def test_identities_of_arguments():
    first, second = plain(), plain()
    known = {id(first)}
    program = lambda x: x * (2 if id(x) in known else 3)  # noqa: E731
    compare(program, [[(first,)], [(second,)], [(first,)]])


def test_names_that_are_looked_up():
    def program(x):
        return x * globals()["of_this" + "_module"]

    try:
        for number in (2.0, 3.0):
            globals()["of_this_module"] = number
            compiled = globals().setdefault("compiled_program", tp.compile(program))
            for _ in range(3):
                assert tp.equal(compiled(plain()), plain() * number)
    finally:
        globals().pop("compiled_program", None)


def test_an_error_in_a_write_names_the_op():
    def program(x):
        x.mul_(2)
        return x * 3

    compare(program, [[(made,)], [(leaf,)]])


def test_a_planted_fault_is_found(monkeypatch):
    from tensorplug.graph import records, state

    for module in (records, state):  # one lists, the other compares
        monkeypatch.setattr(
            module, "of_tensor", lambda tensor: (tensor._array, tensor._state, None)
        )
    with pytest.raises(AssertionError):
        test_what_is_asked_of_state("shape", False)
