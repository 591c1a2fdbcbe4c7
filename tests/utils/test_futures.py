"""Futures as torch's, and the accelerator where there is none."""

import threading

import pytest

import tensorplug as tp


@pytest.mark.parametrize("library", ["tensorplug", "torch"])
def test_futures_as_torch(library):
    futures = pytest.importorskip(f"{library}.futures", reason="torch has the answers")
    future = futures.Future()
    assert not future.done()
    seen = []
    future.add_done_callback(lambda done: seen.append(done.value()))
    chained = future.then(lambda done: done.value() + 1).then(lambda done: 2 * done.wait())
    thread = threading.Thread(target=future.set_result, args=(3,))
    thread.start()
    assert future.wait() == 3
    assert chained.wait() == 8
    thread.join()
    assert seen == [3]
    with pytest.raises(RuntimeError):
        future.set_result(4)
    failing = futures.Future()
    after = failing.then(lambda done: done.value())
    failing.set_exception(ValueError("no"))
    for each in (failing, after):
        with pytest.raises(Exception, match="no"):
            each.wait()
    several = [futures.Future() for _ in range(3)]
    together = futures.collect_all(several)
    for number, each in enumerate(several):
        assert not together.done()
        each.set_result(number)
    assert [each.value() for each in together.wait()] == futures.wait_all(several) == [0, 1, 2]


def test_a_value_is_not_there_before_it_is_set():
    with pytest.raises(RuntimeError, match="not done yet"):
        tp.futures.Future().value()
    assert tp.futures.collect_all([]).wait() == []


def test_the_accelerator_of_a_host_alone(monkeypatch):
    monkeypatch.setattr(tp.accelerator, "_module", lambda: None)
    assert not tp.accelerator.is_available()
    assert tp.accelerator.device_count() == 0
    assert tp.accelerator.current_accelerator() is None
    tp.accelerator.empty_cache()
    with tp.accelerator.device_index(None):
        pass
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        tp.accelerator.synchronize()
    assert tp.get_device_module() is tp.cpu
