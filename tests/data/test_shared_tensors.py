"""Tensors in memory that several processes map."""

import gc
import multiprocessing
import pickle

import pytest
import worker_datasets as here

import tensorplug as tp
import tensorplug.multiprocessing as mp
from tensorplug.core.tensor import shared_memory

DTYPES = [tp.bool, tp.uint8, tp.int64, tp.float16, tp.bfloat16, tp.float32, tp.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_share(dtype):
    tensor = tp.ones(2, 3, dtype=dtype).t()
    assert not tensor.is_shared()
    assert tensor.share_memory_() is tensor
    assert tensor.is_shared()
    assert tensor.dtype is dtype
    assert (tensor.shape, tensor.stride()) == ((3, 2), (1, 3))
    assert tensor.tolist() == tp.ones(3, 2, dtype=dtype).tolist()
    assert tensor[1:].is_shared()
    assert not tensor.clone().is_shared()
    address = tensor.data_ptr()
    assert tensor.share_memory_().data_ptr() == address
    copy = pickle.loads(pickle.dumps(tensor))  # to a file it goes as any tensor
    assert not copy.is_shared()
    assert copy.tolist() == tensor.tolist()


def test_share_odd_tensors():
    assert tp.zeros(0, 3).share_memory_().shape == (0, 3)
    assert tp.tensor(2.0).share_memory_().item() == 2
    gaps = tp.arange(6).reshape(2, 3)[:, ::2].share_memory_()
    assert gaps.tolist() == [[0, 2], [3, 5]]
    meta = tp.empty(2, device="meta")
    assert not meta.is_shared()
    with pytest.raises(NotImplementedError, match="device 'meta' cannot be shared"):
        meta.share_memory_()


def test_gradients_work_on():
    weight = tp.ones(3, requires_grad=True)
    weight.share_memory_()
    assert weight.requires_grad
    (weight * 2).sum().backward()
    assert weight.grad.tolist() == [2, 2, 2]
    optimizer = tp.optim.SGD([weight], lr=0.5, momentum=0.9)
    address = weight.data_ptr()
    optimizer.step()
    assert weight.data_ptr() == address
    assert weight.tolist() == [0, 0, 0]


@pytest.mark.slow
def test_modules(context):
    model = tp.nn.Sequential(tp.nn.Linear(2, 2), tp.nn.BatchNorm1d(2))
    model[0].bias = None
    tied = tp.nn.ModuleList([model, model[0]]).share_memory()
    tensors = [*tied.parameters(), *tied.buffers()]
    assert all(tensor.is_shared() for tensor in tensors)
    assert tied[1].weight is model[0].weight
    process = multiprocessing.get_context(context).Process(
        target=here.fill, args=(model[0].weight, 7.0)
    )
    process.start()
    process.join()
    assert process.exitcode == 0
    assert model[0].weight.tolist() == [[7, 7], [7, 7]]


@pytest.mark.slow
@pytest.mark.parametrize("make", ["plain", "shared", "parameter"])
def test_queues_share(context, make):
    tensor = tp.zeros(3)
    if make == "shared":
        tensor.share_memory_()
    if make == "parameter":
        tensor = tp.nn.Parameter(tensor, requires_grad=False)
    processes = mp.get_context(context)
    inbox, outbox, done = processes.Queue(), processes.Queue(), processes.Event()
    process = processes.Process(target=here.add_one, args=(inbox, outbox, done))
    process.start()
    inbox.put(tensor)
    view, was_shared, kind = outbox.get(timeout=60)
    done.set()
    process.join()
    assert process.exitcode == 0
    assert was_shared
    assert kind == type(tensor).__name__
    assert tensor.tolist() == [1, 1, 1]
    view.add_(1)
    assert tensor.tolist() == [1, 2, 2]
    for queue in (inbox, outbox):
        queue.close()
        queue.join_thread()


def test_a_view_is_sent_as_a_copy():
    base = tp.zeros(2, 2)
    row = base[0]
    _, (handle, *_) = shared_memory.reduce_shared(row)
    assert not row.is_shared()
    base.fill_(1)
    assert row.tolist() == [1, 1]  # it has kept its base
    assert handle[2] == (2,)


def test_results_are_not_sent():
    result = tp.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"non-leaf.*detach"):
        shared_memory.reduce_shared(result)


def test_memory_is_freed():
    gc.collect()
    before = shared_memory.alive()
    tensor = tp.zeros(3).share_memory_()
    view = tensor[1:]
    del tensor
    assert shared_memory.alive() == before + 1
    del view
    assert shared_memory.alive() == before


# --- tensorplug.multiprocessing ---


def test_the_standard_module_is_there():
    assert mp.Process is multiprocessing.Process


def test_strategies_are_remembered():
    first = mp.get_sharing_strategy()
    assert first == "file_descriptor"
    try:
        for strategy in mp.get_all_sharing_strategies():
            mp.set_sharing_strategy(strategy)
            assert mp.get_sharing_strategy() == strategy
        with pytest.raises(AssertionError, match="got 'pipes'"):
            mp.set_sharing_strategy("pipes")
    finally:
        mp.set_sharing_strategy(first)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["spawn", "start_processes"])
def test_spawn(context, function):
    tensor = tp.zeros(3)
    spawn = getattr(mp, function)
    assert spawn(here.fill_numbered, (tensor,), nprocs=3, start_method=context) is None or (
        context == "fork"
    )
    assert tensor.is_shared() == (context != "fork")
    shared = tp.zeros(3).share_memory_()
    running = spawn(here.fill_numbered, (shared,), nprocs=3, join=False, start_method=context)
    assert len(running.pids()) == 3
    while not running.join():
        pass
    assert running.join()
    assert shared.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [
        ("raise", mp.ProcessRaisedException, "ValueError: number one fails"),
        ("exit", mp.ProcessExitedException, "process 1 terminated with exit code 7"),
        ("kill", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
    ],
)
def test_spawn_fails(how, error, text):
    with pytest.raises(error, match=text) as caught:
        mp.spawn(here.end_badly, (how,), nprocs=2, start_method="fork")
    assert caught.value.error_index == 1
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    assert multiprocessing.active_children() == []
