"""What is trained: for each of the six a model, its data, its loss and its optimizer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import samples
import tensorplug as tp
import tensorplug.nn.functional as F
from alexnet import AlexNet
from gnmt import GNMT, PADDING
from mobilenet import MobileNetV2
from ncf import NeuMF
from resnet50 import ResNet50
from tensorplug import nn
from vgg19 import VGG19

NAMES = ("alexnet", "vgg19", "resnet50", "mobilenet", "gnmt", "ncf")
IMAGE_MODELS = {"alexnet": AlexNet, "vgg19": VGG19, "resnet50": ResNet50, "mobilenet": MobileNetV2}


@dataclass
class Task:
    """One of the six, ready to be trained.

    Parameters
    ----------
    model : Module
    optimizer : Optimizer
        Holds the model's weights.
    batches : iterator
        Yields tuples of tensors: first what the model takes, last what it should say.
    loss : callable
        Given the model and a batch, returns the loss.
    unit : str
        What a batch is counted in.
    """

    model: nn.Module
    optimizer: Any
    batches: Iterator[samples.Batch]
    loss: Callable[[nn.Module, samples.Batch], tp.Tensor]
    unit: str


def make(
    name: str,
    *,
    full: bool = False,
    batch: int | None = None,
    side: int | None = None,
    dropout: float | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> Task:
    """Set one of the six up.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    full : bool
        The published sizes; else smaller ones, for a first look.
    batch : int, optional
        Images, sentences or ratings in a batch.
    side : int, optional
        Height and width of the images.
    dropout : float, optional
        Instead of the published share.
    seed : int
        Fixes weights and data.
    device : str
        Where to compute.

    Returns
    -------
    Task
    """
    tp.manual_seed(seed)
    chosen = {} if dropout is None or name in ("resnet50", "ncf") else {"dropout": dropout}
    if name in IMAGE_MODELS:
        model = IMAGE_MODELS[name](width=1.0 if full else 0.25, **chosen).to(device)
        batches = samples.images(
            batch or (8 if full else 16), side or (224 if full else 64), seed, device
        )
        optimizer = tp.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        return Task(model, optimizer, batches, label_loss, "image")
    if name == "gnmt":
        sizes = {} if full else {"vocabulary": samples.VOCABULARY, "hidden": 128}
        model = GNMT(**sizes, **chosen).to(device)
        batches = samples.sentences(batch or (8 if full else 32), 25 if full else 12, seed, device)
        optimizer = tp.optim.Adam(model.parameters(), lr=1e-3)
        return Task(model, optimizer, batches, translation_loss, "sentence")
    if name == "ncf":
        users, items = (138493, 26744) if full else (500, 300)
        sizes = (
            {} if full else {"users": users, "items": items, "factors": 16, "layers": (64, 64, 32)}
        )
        model = NeuMF(**sizes).to(device)
        batches = samples.ratings(batch or (16384 if full else 1024), users, items, seed, device)
        optimizer = tp.optim.Adam(model.parameters(), lr=1e-3 if full else 1e-2)
        return Task(model, optimizer, batches, rating_loss, "rating")
    raise ValueError(f"no model is called {name!r}; there are {', '.join(NAMES)}")


def step(task: Task, batch: samples.Batch) -> tp.Tensor:
    """Train on one batch, and return its loss."""
    task.optimizer.zero_grad()
    loss = task.loss(task.model, batch)
    loss.backward()
    task.optimizer.step()
    return loss.detach()


def label_loss(model: nn.Module, batch: samples.Batch) -> tp.Tensor:
    """Return the cross entropy of the labels."""
    images, labels = batch
    return F.cross_entropy(model(images), labels)


def translation_loss(model: nn.Module, batch: samples.Batch) -> tp.Tensor:
    """Return the cross entropy of each next token, with smoothed labels; padding does not count."""
    source, target = batch
    scores = model(source, target[:, :-1])
    wanted = target[:, 1:].flatten()
    return F.cross_entropy(scores.flatten(0, 1), wanted, ignore_index=PADDING, label_smoothing=0.1)


def rating_loss(model: nn.Module, batch: samples.Batch) -> tp.Tensor:
    """Return the binary cross entropy of what is liked."""
    users, items, liked = batch
    return F.binary_cross_entropy_with_logits(model(users, items), liked)
