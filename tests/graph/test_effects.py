"""What functions in C, finalizers and context variables do happens at each call of a compiled program."""

import atexit
import ctypes
import dataclasses
import decimal
import gc
import hashlib
import io
import operator
import queue
import signal
import socket
import sqlite3
import struct
import sys
import weakref
from contextvars import ContextVar

import numpy as np
import pytest

import tensorplug as tp

CALLS = 7
log = []
waiting = queue.SimpleQueue()
digest = hashlib.md5(usedforsecurity=False)
numbers = (ctypes.c_int * 4)()
packed = bytearray(8)
text = io.StringIO()
table = sqlite3.connect(":memory:")
table.execute("create table t(a)")
left, right = socket.socketpair()
right.setblocking(False)
places = decimal.getcontext()
hidden = ContextVar("hidden", default=0)


class Plain:
    pass


class Finalized:
    def __init__(self):
        pass

    def __del__(self):
        log.append(1)


class Bare:
    """A finalizer, and nothing that is called before."""

    def __del__(self):
        log.append(1)


class Used:
    def method(self):
        return 2

    def __del__(self):
        log.append(1)


@dataclasses.dataclass
class Record:
    number: int = 2


class Counted(dict):
    def get(self, name, default=None):
        return super().get(name, default)


def later():
    log.append(1)


def to_finalize(x):
    weakref.finalize(Plain(), later)
    return x * 2


def with_finalizer(x):
    Finalized()
    return x * 2


def with_bare_finalizer(x):
    Bare()
    return x * 2


def with_used_finalizer(x):
    return x * Used().method()


def to_the_exit(x):
    atexit.register(later)
    return x * 2


def into_a_queue(x):
    waiting.put(1)
    return x * 2


def into_a_digest(x):
    digest.update(b"a")
    return x * 2


def into_numbers_of_c(x):
    numbers[0] += 1
    return x * 2


def into_bytes(x):
    struct.pack_into("B", packed, 0, packed[0] + 1)
    return x * 2


def into_a_text(x):
    text.write("a")
    return x * 2


def into_a_table(x):
    table.execute("insert into t values (1)")
    return x * 2


def into_a_socket(x):
    left.send(b"a")
    return x * 2


def places_kept(x):
    places.prec += 1
    return x * 2


def places_asked_for(x):
    decimal.getcontext().prec += 1
    return x * 2


def depth(x):
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)
    return x * 2


def collector(x):
    first, *others = gc.get_threshold()
    gc.set_threshold(first + 1, *others)
    return x * 2


def handler(x):
    signal.signal(signal.SIGUSR1, lambda *_: None)
    return x * 2


def arrays_shown(x):
    np.set_printoptions(precision=np.get_printoptions()["precision"] + 1)
    return x * 2


def arrays_checked(x):
    np.setbufsize(np.getbufsize() + 16)
    return x * 2


def variable(x):
    operator.methodcaller("set", hidden.get() + 1)(hidden)
    return x * 2


def received():
    try:
        return len(right.recv(1000))
    except BlockingIOError:
        return 0


#: Programs, and what tells how often they did it.
EFFECTS = {
    to_finalize: lambda: len(log),
    with_finalizer: lambda: len(log),
    with_bare_finalizer: lambda: len(log),
    with_used_finalizer: lambda: len(log),
    to_the_exit: atexit._ncallbacks,
    into_a_queue: waiting.qsize,
    into_a_digest: digest.hexdigest,
    into_numbers_of_c: lambda: numbers[0],
    into_bytes: lambda: packed[0],
    into_a_text: text.tell,
    into_a_table: lambda: table.execute("select count(*) from t").fetchone(),
    into_a_socket: received,
    places_kept: lambda: places.prec,
    places_asked_for: lambda: decimal.getcontext().prec,
    depth: sys.getrecursionlimit,
    collector: gc.get_threshold,
    handler: lambda: signal.getsignal(signal.SIGUSR1),
    arrays_shown: lambda: np.get_printoptions()["precision"],
    arrays_checked: np.getbufsize,
    variable: hidden.get,
}


@pytest.fixture(autouse=True, scope="module")
def closed():
    yield
    for opened in (left, right, table):
        opened.close()


@pytest.fixture(autouse=True)
def as_before():
    shown, size, before = np.get_printoptions(), np.getbufsize(), places.prec
    limit, thresholds, asked = sys.getrecursionlimit(), gc.get_threshold(), hidden.get()
    handles = signal.getsignal(signal.SIGUSR1)
    yield
    np.set_printoptions(**shown)
    np.setbufsize(size)
    places.prec = before
    sys.setrecursionlimit(limit)
    gc.set_threshold(*thresholds)
    signal.signal(signal.SIGUSR1, handles)
    hidden.set(asked)
    atexit.unregister(later)


@pytest.fixture(scope="module")
def few_objects():
    """Have the collector look at what these tests make alone: after ten thousand others it takes seconds."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("few_objects")
@pytest.mark.parametrize("program", EFFECTS, ids=lambda program: program.__name__)
def test_happens_at_each_call(program):
    compiled = tp.compile(program)
    seen = EFFECTS[program]
    for _ in range(CALLS):
        before = seen()
        assert compiled(tp.ones(2)).tolist() == [2, 2]
        gc.collect()
        assert seen() != before
    breaks = compiled.explain().breaks
    assert breaks
    assert all(found.reason for found in breaks)


def test_what_the_program_made_goes_when_it_goes():
    def program(x):
        made = Record()
        seen = weakref.ref(made)
        x = x * made.number
        del made
        return x if seen() is None else x * 100

    compiled = tp.compile(program)
    for _ in range(4):
        assert compiled(tp.ones(2)).tolist() == [2, 2]


def test_arguments_go_when_they_go():
    compiled = tp.compile(lambda x, used: x * 2)
    log.clear()
    for number in range(CALLS):
        compiled(tp.ones(2), Used())
        assert len(log) == number + 1


def test_finalizers_of_others_are_none_of_the_programs():
    class Others:
        def __del__(self):
            sys.getrecursionlimit()
            log.append(1)

    held = [Others()]
    op = tp.library.custom_op("effects::let_go", mutates_args=())

    def body(x: tp.Tensor) -> tp.Tensor:
        held.clear()
        return x + 1

    let_go = op(body)
    log.clear()

    @tp.compile
    def program(x):
        return let_go(x) * 2

    for _ in range(3):
        assert program(tp.ones(2)).tolist() == [4, 4]
    assert log == [1]


def test_pure_functions_in_c_are_part_of_graphs():
    scale = struct.Struct("<f")
    factors = Counted(first=2)

    @tp.compile
    def program(x):
        key = hashlib.md5(b"a", usedforsecurity=False).hexdigest()
        out = io.StringIO()
        out.write(key)
        number = operator.add(2, len(out.getvalue())) - 32
        return x * number * scale.size / 4 * factors.get("first") / 2

    for _ in range(4):
        assert program(tp.ones(2)).tolist() == [2, 2]
    assert program.explain().graphs
    assert not program.explain().breaks
