"""Train a generator of handwritten digits against a discriminator, and show what it draws.

::

    python examples/gan/train.py
    python examples/gan/train.py --device cuda --epochs 300

The step is Listing 2 of "PyTorch: An imperative style, high-performance deep learning library", 2019,
https://arxiv.org/abs/1912.01703: two networks, two optimizers, and no loop hidden in a class.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

try:
    import numpy as np
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
    from tqdm import tqdm

    import tensorplug as tp
    import tensorplug.nn.functional as F
    from tensorplug import nn
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"error: {error}; the example needs: pip install '.[examples]'") from None

NOISE = 16  # numbers that the generator makes a digit from
PIXELS = 64
BATCH = 64
ROWS, COLUMNS = 6, 12


class Networks(NamedTuple):
    """The two players and what moves them."""

    discriminator: nn.Module
    generator: nn.Module
    optimizer_d: Any
    optimizer_g: Any


def create_discriminator() -> nn.Module:
    """Return a network that scores images ``(N, 64)``: high for what it takes for real."""
    return nn.Sequential(
        nn.Linear(PIXELS, 256),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(256, 128),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(128, 1),
    )


def create_generator() -> nn.Module:
    """Return a network that makes images ``(N, 64)`` of noise ``(N, 16)``."""
    return nn.Sequential(
        nn.Linear(NOISE, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 256),
        nn.BatchNorm1d(256),
        nn.ReLU(),
        nn.Linear(256, PIXELS),
        nn.Sigmoid(),
    )


def make(device: str = "cpu") -> Networks:
    """Return both networks with their optimizers."""
    discriminator, generator = create_discriminator().to(device), create_generator().to(device)
    optimizers = (
        tp.optim.Adam(network.parameters(), lr=5e-4, betas=(0.5, 0.999))
        for network in (discriminator, generator)
    )
    return Networks(discriminator, generator, *optimizers)


def loss(scores, label: float):
    """Return how far the scores are from saying `label`; 1 is real, 0 is fake."""
    return F.binary_cross_entropy_with_logits(scores, tp.full_like(scores, label))


def step(networks: Networks, real, noise) -> tuple[float, float]:
    """Let both networks learn from one batch, and return their losses.

    Parameters
    ----------
    networks : Networks
        Changed in place.
    real : Tensor
        Images ``(N, 64)``.
    noise : Tensor
        ``(N, 16)``.
    """
    discriminator, generator, optimizer_d, optimizer_g = networks
    # (1) The discriminator learns to tell them apart.
    optimizer_d.zero_grad()
    error_real = loss(discriminator(real), 0.9)  # not quite 1, so that it stays unsure
    error_real.backward()
    fake = generator(noise)
    error_fake = loss(discriminator(fake.detach()), 0.0)
    error_fake.backward()
    optimizer_d.step()
    # (2) The generator learns to be taken for real.
    optimizer_g.zero_grad()
    error = loss(discriminator(fake), 1.0)
    error.backward()
    optimizer_g.step()
    return (error_real + error_fake).item(), error.item()


def read_digits(device: str = "cpu"):
    """Return scikit-learn's 1,797 digits ``(N, 64)`` from 0 to 1, and their labels."""
    images, labels = load_digits(return_X_y=True)
    return tp.from_numpy((images / 16).astype(np.float32)).to(device), labels


def train(images, epochs: int, seed: int) -> tuple[Networks, list[tuple[float, float]]]:
    """Return networks trained on the images, and their mean losses in each epoch."""
    tp.manual_seed(seed)
    device = str(images.device)
    networks = make(device)
    losses = []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)
    for _ in bar:
        batches = [images[batch.to(device)] for batch in tp.randperm(len(images)).split(BATCH)[:-1]]
        seen = [step(networks, real, tp.randn(len(real), NOISE, device=device)) for real in batches]
        losses.append((sum(d for d, _ in seen) / len(seen), sum(g for _, g in seen) / len(seen)))
        bar.set_postfix(discriminator=f"{losses[-1][0]:.3f}", generator=f"{losses[-1][1]:.3f}")
    return networks, losses


@tp.no_grad()
def sample(generator: nn.Module, count: int, device: str = "cpu"):
    """Return `count` images that the generator makes."""
    generator.eval()
    return generator(tp.randn(count, NOISE, device=device))


def judge(images, real, labels) -> tuple[float, int]:
    """Return the mean distance of images to the nearest real one, and how many digits those are.

    A digit counts if it is the nearest real one of at least 2 % of the images.
    """
    distances = tp.cdist(images, real).cpu()
    nearest, which = distances.min(dim=1)
    shares = np.bincount(labels[which.numpy()], minlength=10) / len(images)
    return nearest.mean().item(), int((shares >= 0.02).sum())


def draw(path: Path, images, losses: Sequence[tuple[float, float]]) -> None:
    """Write the losses and a grid of images as a PNG file."""
    figure = Figure(figsize=(12, 9), dpi=100, layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 2))
    axes = upper.subplots()
    axes.plot(losses, label=("discriminator", "generator"))
    axes.set(xlabel="epoch", ylabel="loss")
    axes.legend()
    lower.suptitle("What the generator draws")
    for cell, image in zip(lower.subplots(ROWS, COLUMNS).flat, images.cpu().numpy(), strict=True):
        cell.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        cell.set_axis_off()
    figure.savefig(path)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Train a GAN on handwritten digits.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/gan"), help="folder to write")
    parser.add_argument("--quick", action="store_true", help="12 epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = 12
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    try:
        tp.ones(1).to(options.device).sum().item()
        options.out.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError) as error:
        parser.error(str(error))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    images, labels = read_digits(options.device)
    start = time.perf_counter()
    networks, losses = train(images, options.epochs, options.seed)
    seconds = time.perf_counter() - start
    drawn = sample(networks.generator, 500, options.device)
    picture = options.out / "gan.png"
    draw(picture, drawn[: ROWS * COLUMNS], losses)
    distance, digits = judge(drawn, images, labels)
    untrained, _ = judge(tp.rand(500, PIXELS, device=options.device), images, labels)
    print(f"{options.epochs} epochs in {seconds:.1f} s on {images.device}, picture {picture}")
    print(
        f"mean distance to the nearest real digit {distance:.2f} (noise: {untrained:.2f}), "
        f"{digits} of 10 digits drawn"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
