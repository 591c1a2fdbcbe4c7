"""Futures: what comes later, what goes wrong on the way, and what is refused."""

import pickle

import pytest

import tensorplug as tp
from tensorplug.futures import Future, collect_all, wait_all


def fails_by_itself(done):
    raise ValueError("not today")


def fails_by_value(done):
    return done.value() + 1


def fails_by_type(done):
    return done + 1


def fails_by_arguments():
    return 1


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (fails_by_itself, "ValueError: not today"),
        (fails_by_type, "unsupported operand"),
        (fails_by_arguments, "takes 0 positional arguments"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_error_in_what_follows(callback, said, first):
    future = Future()
    if first:
        future.set_result(1)
    following = future.then(callback).then(lambda done: done.wait())
    if not first:
        future.set_result(1)
    assert future.wait() == 1
    for ask in (following.wait, following.value, lambda: wait_all([future, following])):
        with pytest.raises(RuntimeError, match=said) as raised:
            ask()
        assert str(raised.value).startswith("Got the following error when running the callback")


def test_an_exception_is_its_own_and_wrapped_for_those_after():
    future = Future()
    following = future.then(fails_by_value)
    future.set_exception(KeyError("gone"))
    with pytest.raises(KeyError):
        future.wait()
    with pytest.raises(RuntimeError, match="Got the following error") as raised:
        following.wait()
    assert isinstance(raised.value.__cause__, KeyError)


def test_what_is_refused(tmp_path):
    future = Future()
    future.set_result(1)
    with pytest.raises(RuntimeError, match="Future can only be marked completed once"):
        future.set_result(2)
    for write in (pickle.dumps, lambda it: tp.save(it, tmp_path / "future")):
        with pytest.raises(RuntimeError, match=r"Can not pickle torch\.futures\.Future"):
            write(future)
    for gather in (wait_all, collect_all):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            gather((future, None))
