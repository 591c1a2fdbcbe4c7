"""How a loader with workers fares with a slow disk, over many epochs, and when a worker is killed.

``python -m benchmarks.loading``
"""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from statistics import median

import tensorplug as tp
from tensorplug.data import DataLoader, Dataset

READ_SECONDS = 0.005
SAMPLES = 256
EPOCHS = 1000


class SlowDisk(Dataset):
    """Samples that take as long to read as from a slow disk."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        time.sleep(READ_SECONDS)
        return tp.full((3, 64, 64), float(index))


class Blocks(Dataset):
    """Samples that are there at once, in batches large enough for shared memory."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return tp.full((3, 64, 64), float(index))


class Endless(Dataset):
    """Samples that never come."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        signal.pause()


def seconds(loader):
    start = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - start


def slow_disk():
    print(f"{SAMPLES} samples of 48 KB, {READ_SECONDS * 1000:g} ms each, batches of 16")
    alone = None
    for workers in (0, 1, 2, 4, 8):
        loader = DataLoader(SlowDisk(), batch_size=16, num_workers=workers)
        taken = median([seconds(loader) for _ in range(3)])
        alone = alone or taken
        print(f"  {workers} workers: {taken:.2f} s, {alone / taken:.1f} times as fast as none")


def held():
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    return f"{resident:,} kB resident, {len(list(Path('/proc/self/fd').iterdir()))} open files"


def many_epochs():
    for persistent in (False, True):
        loader = DataLoader(Blocks(), batch_size=4, num_workers=2, persistent_workers=persistent)
        seconds(loader)
        before = held()
        for _ in range(EPOCHS):
            seconds(loader)
        print(f"{EPOCHS} epochs, persistent_workers={persistent}: {before} -> {held()}")


def killed():
    for method in multiprocessing.get_all_start_methods():
        loader = DataLoader(Endless(), num_workers=2, multiprocessing_context=method)
        batches = iter(loader)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
        start = time.perf_counter()
        try:
            next(batches)
        except RuntimeError as error:
            taken = (time.perf_counter() - start) * 1000
            print(f"killed, {method}: {taken:.0f} ms until: {error}")


if __name__ == "__main__":
    slow_disk()
    killed()
    many_epochs()
