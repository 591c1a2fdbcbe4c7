"""A child that is forked while other threads compute computes, too."""

import contextlib
import gc
import os
import signal
import sys
import threading

import pytest

import tensorplug as tp
from tensorplug.autograd.engine import accumulation
from tensorplug.core import locks
from tensorplug.core.device import generator, queues
from tensorplug.core.dispatch import keys

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
FORKS = 400 if os.environ.get("TENSORPLUG_FUZZ") else 12
PATIENCE = 60


def compute():
    """What passes by every lock: a new key, random numbers, a backward pass, gradients that add up."""
    x = tp.rand(8, 8, requires_grad=True)
    for _ in range(2):
        (x @ x).relu().sum().backward()
    tp.Generator().manual_seed(1)
    tp.manual_seed(1)
    keys.reset_tables()
    queues.queues_differ(0)
    return float(x.grad.sum())


@pytest.fixture(autouse=True)
def queues_as_before(monkeypatch):
    monkeypatch.setattr(queues, "ever", queues.ever)


def in_child(function, patience=PATIENCE):
    """Return what a forked child exits with after a call: 0, unless it fails, or an alarm stops it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(patience)
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def all_locks():
    return list(locks._locks)


@contextlib.contextmanager
def kept(lock):
    """Have a lock stay in children as it is, which no lock of the library may."""
    locks._locks.discard(lock)
    try:
        yield
    finally:
        locks.renewed(lock)


def locks_that_are_kept():
    gc.collect()
    kinds = (type(threading.Lock()), type(threading.RLock()))
    known = {id(lock) for lock in all_locks()}
    unknown = []
    for name, module in list(sys.modules.items()):
        if name.startswith("tensorplug.") and not name.startswith("tensorplug.data.workers"):
            for label, value in vars(module).items():
                if isinstance(value, kinds) and id(value) not in known:
                    unknown.append(f"{name}.{label}")
    return unknown


MODULE_LOCKS = {
    "keys.lock": keys.lock,
    "generator._lock": generator._lock,
    "queues._lock": queues._lock,
    "accumulation._accumulating": accumulation._accumulating,
}


def test_every_lock_of_the_library_is_renewed():
    assert locks_that_are_kept() == []
    assert {id(lock) for lock in MODULE_LOCKS.values()} <= {id(lock) for lock in all_locks()}


def test_a_lock_that_is_not_renewed_is_found():
    with kept(queues._lock):
        assert locks_that_are_kept() == ["tensorplug.core.device.queues._lock"]


def in_child_while_held(known, patience=PATIENCE):
    """Return what a child exits with that computes, forked while another thread holds some locks."""
    taken, done = threading.Event(), threading.Event()

    def hold():
        held = [lock for lock in known if lock.acquire(False)]
        taken.set()
        done.wait()
        for lock in held:
            lock.release()

    compute()
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        return in_child(compute, patience)
    finally:
        done.set()
        thread.join()


def test_locks_that_another_thread_holds():
    assert in_child_while_held(all_locks()) == 0
    assert compute() > 0


@pytest.mark.parametrize("lock", MODULE_LOCKS.values(), ids=MODULE_LOCKS)
def test_a_child_that_waits_is_found(lock):
    with kept(lock):
        assert in_child_while_held([*all_locks(), lock], patience=1) == -signal.SIGALRM


def in_children_while_threads_compute(patience=PATIENCE):
    """Return what children exit with that compute, forked while threads do; up to the first that fails."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            compute()

    compute()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(FORKS):
            code = in_child(compute, patience)
            if code:
                return code
        return 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_forks_while_threads_compute():
    assert in_children_while_threads_compute() == 0


def test_a_child_that_waits_is_found_while_threads_compute():
    with kept(keys.lock):
        assert in_children_while_threads_compute(patience=1) == -signal.SIGALRM
