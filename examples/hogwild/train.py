"""Train one network from several processes at once, without locks.

::

    python examples/hogwild/train.py
    python examples/hogwild/train.py --processes 4 --epochs 8

The weights lie in memory that all processes share. Each process reads them, computes a gradient on
its part of the digits, and writes its step back whenever it is ready; now and then a step is lost to
another's, and the network learns all the same (Niu, Recht, Ré and Wright, *Hogwild!*, 2011,
https://arxiv.org/abs/1106.5730).
"""

import argparse
import os
import time
from collections.abc import Sequence

if __name__ == "__main__":
    # The matrices are so small that more threads cost more than they bring. NumPy reads this once,
    # when it is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
except ModuleNotFoundError as error:
    raise SystemExit(f"error: {error}; the example needs: pip install '.[demo]'") from None

import tensorplug as tp
import tensorplug.multiprocessing as mp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug.data import DataLoader, TensorDataset

BRIGHTEST = 16  # the pixels count from 0 to 16
BATCH = 32
LEARNING_RATE = 0.05


def read_digits() -> tuple[TensorDataset, TensorDataset]:
    """Return the digits that scikit-learn carries: 1,437 to learn from and 360 to test with."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        (images / BRIGHTEST).astype(np.float32),
        labels.astype(np.int64),
        test_size=0.2,
        stratify=labels,
        random_state=1,
    )
    learn_images, test_images, learn_labels, test_labels = map(tp.from_numpy, parts)
    return TensorDataset(learn_images, learn_labels), TensorDataset(test_images, test_labels)


def make_model() -> nn.Module:
    """Return a new network for images of 64 pixels."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def learn(rank: int, model: nn.Module, processes: int, epochs: int, seed: int) -> None:
    """Take steps with every digit whose number is `rank` modulo `processes`."""
    tp.manual_seed(seed + rank)
    digits = read_digits()[0]
    mine = range(rank, len(digits), processes)
    loader = DataLoader(tp.data.Subset(digits, mine), BATCH, shuffle=True)
    optimizer = tp.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


def score(model: nn.Module) -> float:
    """Return the share of test digits that the network reads correctly."""
    images, labels = read_digits()[1].tensors
    with tp.no_grad():
        return (model(images).argmax(dim=1) == labels).float().mean().item()


def train(processes: int, epochs: int, seed: int, start_method: str = "spawn") -> nn.Module:
    """Return a network that `processes` processes have trained together.

    Parameters
    ----------
    processes : int
        How many.
    epochs : int
        How often each shows it its part of the digits.
    seed : int
        Fixes the first weights, and the order within each process; not how they interleave.
    start_method : str
        How the processes are started.
    """
    tp.manual_seed(seed)
    model = make_model().share_memory()
    mp.spawn(learn, (model, processes, epochs, seed), nprocs=processes, start_method=start_method)
    return model


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and say how well it went."""
    parser = argparse.ArgumentParser(description="Train one network from several processes.")
    parser.add_argument("--processes", type=int, default=2, help="default: 2")
    parser.add_argument("--epochs", type=int, default=20, help="default: 20")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    options = parser.parse_args(arguments)
    if options.processes < 1 or options.epochs < 1:
        parser.error("--processes and --epochs must be at least 1")
    start = time.perf_counter()
    model = train(options.processes, options.epochs, options.seed)
    seconds = time.perf_counter() - start
    print(
        f"test accuracy {score(model):.2%} after {options.epochs} epochs of "
        f"{options.processes} processes in {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
