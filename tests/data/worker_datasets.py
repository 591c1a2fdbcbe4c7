"""Datasets and functions that worker processes run; importable by name, as spawn needs."""

import multiprocessing
import os
import random
import signal

import numpy as np

import tensorplug as tp
from tensorplug.data import Dataset, IterableDataset, get_worker_info


class Structured(Dataset):
    """Samples of many sorts, some large enough for shared memory."""

    def __init__(self, size=20, side=100):
        self.size = size
        self.side = side

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return {
            "image": tp.full((self.side, self.side), float(index)),
            "half": tp.full((3,), index, dtype=tp.bfloat16),
            "array": np.arange(index, index + 4),
            "label": index,
            "name": f"sample {index}",
        }


class Count(IterableDataset):
    """The numbers below `size`, shared out among workers."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.size) if info is None else self.part(info))

    def part(self, info):
        return range(info.id, self.size, info.num_workers)


class Uneven(Count):
    """Worker 0 has all the numbers but one."""

    def part(self, info):
        return range(self.size - 1) if info.id == 0 else [self.size - 1]


class Facts(Dataset):
    """What a worker knows of itself, as a sample."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        assert info.dataset is self
        return {
            "id": info.id,
            "workers": info.num_workers,
            "seed": info.seed,
            "initial_seed": tp.initial_seed(),
            "pid": os.getpid(),
            "threads": tp.get_num_threads(),
            "draws": (random.random(), np.random.random(), tp.rand(()).item()),  # noqa: NPY002
            "initialized": initialized,
        }


initialized = None


def initialize(worker):
    global initialized
    initialized = worker


def fail_to_initialize(worker):
    raise ValueError(f"worker {worker} cannot begin")


class Strange(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Failing(Dataset):
    """Raises for index 2."""

    def __init__(self, sort):
        self.sort = sort

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 2:
            self.fail()
        return index

    def fail(self):
        class Local(Exception):
            pass

        errors = {
            "value": ValueError("no two"),
            "key": KeyError("no two"),
            "strange": Strange("no two", "odd"),
            "local": Local("no two"),
            "stop": StopIteration("no two"),
        }
        raise errors[self.sort]


class Ending(Failing):
    """The worker ends at index 2."""

    def fail(self):
        if self.sort == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)


class Gate:
    """Opens once for all; unlike an Event it takes no harm when a process that waits is killed."""

    def __init__(self, context="fork"):
        self.semaphore = multiprocessing.get_context(context).Semaphore(0)

    def open(self):
        self.semaphore.release()

    def wait(self):
        self.semaphore.acquire()
        self.semaphore.release()


class Waiting(Dataset):
    """Index 0 waits for a gate to open."""

    def __init__(self, gate):
        self.gate = gate

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 0:
            self.gate.wait()
        return index


class Meeting(Dataset):
    """Each read waits until as many processes read as are to meet, as if for a slow disk."""

    def __init__(self, processes, context="fork"):
        self.barrier = multiprocessing.get_context(context).Barrier(processes)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.barrier.wait(timeout=60)  # breaks the barrier, which raises, if the others never come
        return index


class Counting(Dataset):
    """Counts in shared memory how often it was read."""

    def __init__(self, size):
        self.size = size
        self.reads = tp.zeros(size, dtype=tp.int64).share_memory_()

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        self.reads[index] += 1
        return index


def unpicklable(samples):
    return lambda: samples


def attached(samples):
    return (tp.ones(2, requires_grad=True) * 2, samples)


def first(samples):
    return samples[0]


# --- processes that share tensors ---


def add_one(inbox, outbox, done):
    """Add 1 to a tensor in place, answer with a view of it, and live until that has arrived."""
    tensor = inbox.get()
    tensor.add_(1)
    outbox.put((tensor[1:], tensor.is_shared(), type(tensor).__name__))
    done.wait()


def fill(tensor, value):
    with tp.no_grad():
        tensor.fill_(value)


def fill_numbered(index, tensor):
    tensor[index] = index + 1


def end_badly(index, how):
    if index == 0:
        signal.pause()  # until the others' failure ends it
    if how == "raise":
        raise ValueError("number one fails")
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), signal.SIGKILL)
