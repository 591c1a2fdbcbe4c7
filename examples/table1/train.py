"""Train one of the six models that Table 1 of the paper on PyTorch measures.

::

    python examples/table1/train.py resnet50 --steps 20
    python examples/table1/train.py gnmt --steps 300 --device cuda
    python examples/table1/train.py vgg19 --full --batch 4

The paper is "PyTorch: An imperative style, high-performance deep learning library", 2019,
https://arxiv.org/abs/1912.01703.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

try:
    from tqdm import tqdm

    import tensorplug as tp
    from tasks import NAMES, Task, make, step
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"error: {error}; the example needs: pip install '.[demo]'") from None

LINES = 10  # of losses that a run prints


def train(task: Task, steps: int, progress: bool = True) -> tuple[list[float], list[float]]:
    """Take steps of training.

    Parameters
    ----------
    task : Task
        Its model is changed in place.
    steps : int
        How many.
    progress : bool
        Whether to show a progress bar and losses.

    Returns
    -------
    losses, seconds : list of float
        One per step.
    """
    task.model.train()
    losses: list[float] = []
    seconds: list[float] = []
    every = max(1, steps // LINES)
    bar = tqdm(
        range(1, steps + 1), desc="training", unit="step", disable=None if progress else True
    )
    for number in bar:
        batch = next(task.batches)
        start = time.perf_counter()
        losses.append(step(task, batch).item())  # the number waits for the device
        seconds.append(time.perf_counter() - start)
        if progress and (number % every == 0 or number == 1):
            bar.write(f"step {number:5}   loss {losses[-1]:.4f}   {seconds[-1]:.3f} s")
    return losses, seconds


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(description="Train one of the models of the PyTorch paper.")
    parser.add_argument("model", choices=NAMES)
    parser.add_argument("--steps", type=int, default=20, help="default: 20")
    parser.add_argument("--batch", type=int, help="images, sentences or ratings in a step")
    parser.add_argument("--side", type=int, help="height and width of the images")
    parser.add_argument("--full", action="store_true", help="the published sizes, not smaller ones")
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    parser.add_argument("--threads", type=int, help="default: the library's")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    options = parser.parse_args(arguments)
    for name in ("steps", "batch", "side", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1, got {value}")
    try:
        tp.ones(1).to(options.device).sum().item()
    except RuntimeError as error:
        parser.error(f"--device {options.device}: {error}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    if options.threads:
        tp.set_num_threads(options.threads)
    task = make(
        options.model,
        full=options.full,
        batch=options.batch,
        side=options.side,
        seed=options.seed,
        device=options.device,
    )
    weights = sum(weight.numel() for weight in task.model.parameters())
    print(f"{options.model}: {weights:,} weights, on {options.device}")
    losses, seconds = train(task, options.steps)
    size = len(next(task.batches)[0])
    rate = size / statistics.median(seconds)
    print(
        f"loss {losses[0]:.4f} at first, {losses[-1]:.4f} at last; {rate:.1f} {task.unit}s a second"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
