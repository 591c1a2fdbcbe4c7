"""A child that is forked while other threads compute computes, too."""

import gc
import os
import sys
import threading

import pytest

import tensorplug as tp
from tensorplug.autograd.engine import engine
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
    keys.reset_tables()
    return float(x.grad.sum())


def in_child(function):
    """Return what a forked child exits with after a call: 0, unless it fails, or an alarm stops it."""
    pid = os.fork()
    if pid == 0:
        import signal

        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def all_locks():
    return list(locks._locks)


def test_every_lock_of_the_library_is_renewed():
    gc.collect()
    kinds = (type(threading.Lock()), type(threading.RLock()))
    known = {id(lock) for lock in all_locks()}
    unknown = []
    for name, module in list(sys.modules.items()):
        if name.startswith("tensorplug.") and not name.startswith("tensorplug.data.workers"):
            for label, value in vars(module).items():
                if isinstance(value, kinds) and id(value) not in known:
                    unknown.append(f"{name}.{label}")
    assert unknown == []
    assert {id(keys.lock), id(generator._lock), id(queues._lock), id(engine._accumulating)} <= known


def test_locks_that_another_thread_holds():
    taken, done = threading.Event(), threading.Event()

    def hold():
        held = [lock for lock in all_locks() if lock.acquire(False)]
        taken.set()
        done.wait()
        for lock in held:
            lock.release()

    compute()
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        assert in_child(compute) == 0
    finally:
        done.set()
        thread.join()
    assert compute() > 0


def test_forks_while_threads_compute():
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
            assert in_child(compute) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
