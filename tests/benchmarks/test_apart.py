"""Work in a process of its own: what it returns and raises, and what ends it."""

import functools
import multiprocessing
import os
import signal

import pytest
from benchmarks import apart

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the system has no forks"
)
MEMORY = 2**36


def _raises(error: Exception) -> None:
    raise error


def _takes(count: int) -> int:
    return len(bytearray(count))


def _never_ends() -> None:
    while True:
        pass


def test_what_the_work_returns_is_returned_from_another_process() -> None:
    assert apart.result(lambda: {"there": os.getpid()}, 60, MEMORY)["there"] != os.getpid()


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="wrong"):
        apart.result(functools.partial(_raises, ValueError("wrong")), 60, MEMORY)


def test_what_asks_for_too_much_memory_gets_an_error() -> None:
    assert apart.result(functools.partial(_takes, 10), 60, MEMORY) == 10
    with pytest.raises(MemoryError):
        apart.result(functools.partial(_takes, 2 * MEMORY), 60, MEMORY)


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError, match="more than"):
        apart.result(_never_ends, 0.1, MEMORY)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGKILL, MemoryError), (signal.SIGTERM, RuntimeError)]
)
def test_what_is_ended_by_a_signal_is_told_of(number: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        apart.result(lambda: os.kill(os.getpid(), number), 60, MEMORY)
