"""Train a variational autoencoder on handwritten digits, and show what it keeps and invents.

::

    python examples/vae/train.py
    python examples/vae/train.py --device cuda --epochs 300 --latent 2

Kingma and Welling, "Auto-encoding variational Bayes", 2013, https://arxiv.org/abs/1312.6114.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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

PIXELS, HIDDEN = 64, 256
BATCH = 64
HELD_OUT = 360  # images for testing, the last ones
COLUMNS = 12


class VAE(nn.Module):
    """An encoder to a normal distribution over few numbers, and a decoder from them.

    Parameters
    ----------
    latent : int
        How many numbers.
    """

    def __init__(self, latent: int = 8) -> None:
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU())
        self.mean = nn.Linear(HIDDEN, latent)
        self.log_variance = nn.Linear(HIDDEN, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS)
        )

    def forward(self, images, noise):
        """Return logits of the pixels, mean and log variance for images ``(N, 64)``.

        The noise, ``(N, latent)``, picks a point of the distribution, so that the gradient
        passes through mean and variance (the reparametrisation trick).
        """
        features = self.encoder(images)
        mean, log_variance = self.mean(features), self.log_variance(features)
        return self.decoder(mean + (log_variance / 2).exp() * noise), mean, log_variance

    def loss(self, images, noise):
        """Return the negative evidence lower bound per image, in nats."""
        logits, mean, log_variance = self(images, noise)
        unlike = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return (unlike + divergence) / len(images)

    @tp.no_grad()
    def rebuild(self, images):
        """Return the images that the means of their distributions stand for."""
        return self.decoder(self.mean(self.encoder(images))).sigmoid()

    @tp.no_grad()
    def sample(self, noise):
        """Return new images, one per row of noise."""
        return self.decoder(noise).sigmoid()


def step(model: VAE, optimizer: Any, images, noise) -> float:
    """Take one step, and return the loss before it."""
    optimizer.zero_grad()
    loss = model.loss(images, noise)
    loss.backward()
    optimizer.step()
    return loss.item()


@tp.no_grad()
def test(model: VAE, images) -> float:
    """Return the loss on images, with the same noise each time."""
    noise = tp.randn(len(images), model.latent, generator=tp.Generator().manual_seed(0))
    return model.loss(images, noise.to(images.device)).item()


def read_digits(device: str = "cpu"):
    """Return scikit-learn's digits ``(N, 64)`` from 0 to 1: for training, and for testing."""
    images = tp.from_numpy((load_digits().data / 16).astype(np.float32)).to(device)
    return images[:-HELD_OUT], images[-HELD_OUT:]


def train(
    images, held_out, epochs: int, latent: int, seed: int
) -> tuple[VAE, list[tuple[float, float]]]:
    """Return a model, and its mean losses on both sets of images after each epoch."""
    tp.manual_seed(seed)
    device = images.device
    model = VAE(latent).to(device)
    optimizer = tp.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)
    for _ in bar:
        total = 0.0
        for batch in tp.randperm(len(images)).to(device).split(BATCH):
            noise = tp.randn(len(batch), latent, device=device)
            total += step(model, optimizer, images[batch], noise) * len(batch)
        losses.append((total / len(images), test(model, held_out)))
        bar.set_postfix(loss=f"{losses[-1][0]:.2f}", test=f"{losses[-1][1]:.2f}")
    return model, losses


def draw(path: Path, model: VAE, images, losses: Sequence[tuple[float, float]]) -> None:
    """Write the losses, test images with what is rebuilt of them, and samples as a PNG file."""
    noise = tp.randn(3 * COLUMNS, model.latent, device=images.device)
    shown = tp.cat([images[:COLUMNS], model.rebuild(images[:COLUMNS]), model.sample(noise)])
    figure = Figure(figsize=(12, 9), dpi=100, layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 2))
    axes = upper.subplots()
    axes.plot(losses, label=("training", "test"))
    axes.set(xlabel="epoch", ylabel="loss, nats per image")
    axes.legend()
    lower.suptitle("Test digits; what is rebuilt of them; three rows of inventions")
    for cell, image in zip(lower.subplots(5, COLUMNS).flat, shown.cpu().numpy(), strict=True):
        cell.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        cell.set_axis_off()
    figure.savefig(path)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Train a variational autoencoder on handwritten digits.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--latent", type=int, default=8, help="numbers that describe an image")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/vae"), help="folder to write")
    parser.add_argument("--quick", action="store_true", help="10 epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = 10
    for name in ("epochs", "latent"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    try:
        tp.ones(1).to(options.device).sum().item()
        options.out.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError) as error:
        parser.error(str(error))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    images, held_out = read_digits(options.device)
    start = time.perf_counter()
    model, losses = train(images, held_out, options.epochs, options.latent, options.seed)
    seconds = time.perf_counter() - start
    picture = options.out / "vae.png"
    draw(picture, model, held_out, losses)
    error = (model.rebuild(held_out) - held_out).abs().mean().item()
    print(f"{options.epochs} epochs in {seconds:.1f} s on {images.device}, picture {picture}")
    print(
        f"test loss {losses[0][1]:.2f} at first, {losses[-1][1]:.2f} at last; "
        f"a rebuilt pixel is off by {error:.3f} in the mean"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
