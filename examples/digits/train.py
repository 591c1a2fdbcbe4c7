"""Train a small convolutional network on handwritten digits, and show what it learned.

::

    python examples/digits/train.py
    python examples/digits/train.py --device cuda --epochs 40
    python examples/digits/train.py --evaluate out/digits/digits.pt

A run writes a checkpoint and a picture, and has a second process read the checkpoint and confirm
the accuracy.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # The matrices are so small that more threads cost more than they bring. NumPy reads this once,
    # when it is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    from tqdm import tqdm

    import tensorplug as tp
    import tensorplug.nn.functional as F
    from digits import Digits, load_digits, shift_randomly
    from model import DigitNet
    from picture import draw
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"error: {error}; the example needs: pip install '.[demo]'") from None

EPOCHS = 20
BATCH = 64
LEARNING_RATE = 3e-3


def train_epoch(model: DigitNet, optimizer: Any, digits: Digits, shift: bool = True) -> float:
    """Show the network every training digit once.

    Parameters
    ----------
    model : DigitNet
        Changed in place.
    optimizer : Optimizer
        Holds the network's weights.
    digits : Digits
        Its training half is used.
    shift : bool
        Whether to move the images by up to a pixel.

    Returns
    -------
    float
        The mean loss.
    """
    model.train()
    images, labels = digits.train_images, digits.train_labels
    total = 0.0
    for batch in tp.randperm(len(labels)).to(labels.device).split(BATCH):
        seen = shift_randomly(images[batch]) if shift else images[batch]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(seen), labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(labels)


def predict(model: DigitNet, images: tp.Tensor) -> tp.Tensor:
    """Return the digit that the network sees in each of the images, ``(N,)``."""
    model.eval()
    with tp.no_grad():
        return model(images).argmax(dim=1)


def count_right(model: DigitNet, digits: Digits) -> int:
    """Return how many of the test digits the network reads correctly."""
    return int((predict(model, digits.test_images) == digits.test_labels).sum().item())


def train(
    digits: Digits, epochs: int, seed: int, progress: bool = True
) -> tuple[DigitNet, list[float], list[float]]:
    """Train a new network.

    Parameters
    ----------
    digits : Digits
        The data; the network is put on its device.
    epochs : int
        How often to show all of it.
    seed : int
        Fixes the first weights, the order and the shifts.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    model : DigitNet
    losses, accuracies : list of float
        One per epoch: the mean training loss, and the share of test digits read correctly.
    """
    tp.manual_seed(seed)
    model = DigitNet().to(digits.train_images.device)
    optimizer = tp.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = tp.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    losses: list[float] = []
    accuracies: list[float] = []
    bar = tqdm(
        range(1, epochs + 1), desc="training", unit="epoch", disable=None if progress else True
    )
    for epoch in bar:
        losses.append(train_epoch(model, optimizer, digits))
        schedule.step()
        accuracies.append(count_right(model, digits) / len(digits.test_labels))
        if progress:
            bar.write(
                f"epoch {epoch:3}   loss {losses[-1]:.4f}   test accuracy {accuracies[-1]:.2%}"
            )
    return model, losses, accuracies


def save(model: DigitNet, right: int, path: Path) -> None:
    """Write the network's weights and its score on the test digits."""
    tp.save({"model": model.state_dict(), "right": right}, path)


def load(path: Path, device: str) -> tuple[DigitNet, int]:
    """Read what `save` wrote, onto a device."""
    checkpoint = tp.load(path, map_location=device)
    model = DigitNet().to(device)
    model.load_state_dict(checkpoint["model"])
    return model, checkpoint["right"]


def evaluate(path: Path, device: str) -> bool:
    """Test a checkpoint, and say whether it scores what it scored when it was saved."""
    model, expected = load(path, device)
    digits = load_digits(device)
    right, count = count_right(model, digits), len(digits.test_labels)
    verdict = "as when it was saved" if right == expected else f"but {expected} when it was saved"
    print(f"reloaded: {right} of {count} test digits right ({right / count:.2%}), {verdict}")
    return right == expected


def evaluate_in_new_process(path: Path, device: str) -> bool:
    """Run `evaluate` in a Python process of its own."""
    command = [sys.executable, __file__, "--evaluate", str(path), "--device", device]
    return subprocess.run(command, check=False).returncode == 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        description="Train a small convolutional network on handwritten digits."
    )
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"default: {EPOCHS}")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument(
        "--out", type=Path, default=Path("out/digits"), help="folder to write (default: out/digits)"
    )
    parser.add_argument(
        "--evaluate", type=Path, metavar="CHECKPOINT", help="only test what an earlier run saved"
    )
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    try:
        tp.ones(1).to(options.device).sum().item()
    except RuntimeError as error:
        parser.error(f"--device {options.device}: {error}")
    try:
        if options.evaluate:
            options.evaluate.open("rb").close()
        else:
            options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(str(error))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    if options.evaluate:
        try:
            return 0 if evaluate(options.evaluate, options.device) else 1
        except (RuntimeError, LookupError, TypeError) as error:
            message = f"{options.evaluate} is no checkpoint of this example: {error}"
            print(f"error: {message}", file=sys.stderr)
            return 2

    start = time.perf_counter()
    digits = load_digits(options.device)
    model, losses, accuracies = train(digits, options.epochs, options.seed)
    seconds = time.perf_counter() - start

    checkpoint, picture = options.out / "digits.pt", options.out / "digits.png"
    save(model, count_right(model, digits), checkpoint)
    same = evaluate_in_new_process(checkpoint, options.device)
    images, labels = digits.test_images, digits.test_labels
    predicted = predict(model, images)
    draw(picture, losses, accuracies, *(t.cpu().numpy() for t in (images, labels, predicted)))

    print(
        f"""
device         {images.device}
test accuracy  {accuracies[-1]:.2%}
training       {seconds:.1f} s for {options.epochs} epochs
checkpoint     {checkpoint}
picture        {picture}"""
    )
    if not same:
        print("error: the reloaded checkpoint does not score the same", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
