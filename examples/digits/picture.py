"""The picture of a run: curves above, test digits below."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

ROWS, COLUMNS = 5, 16


def draw(
    path: Path,
    losses: Sequence[float],
    accuracies: Sequence[float],
    images: np.ndarray,
    labels: np.ndarray,
    predicted: np.ndarray,
) -> None:
    """Write the curves of a run and a grid of test digits as a PNG file.

    Parameters
    ----------
    path : Path
        The file to write.
    losses, accuracies : sequence of float
        One per epoch; the accuracies from 0 to 1.
    images : ndarray
        Test digits of shape ``(N, 1, 8, 8)``.
    labels, predicted : ndarray
        What they are and what the network takes them for, each of shape ``(N,)``. Where the two
        differ the digit comes first in the grid, in red, with its true label.
    """
    figure = Figure(figsize=(12, 9), dpi=120, layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(2, 3))
    left, right = upper.subplots(1, 2)
    _draw_curve(left, losses, "training loss", f"{losses[-1]:.3f}", "C0")
    left.set_yscale("log")
    _draw_curve(right, accuracies, "test accuracy", f"{accuracies[-1]:.2%}", "C2")
    right.yaxis.set_major_formatter(PercentFormatter(1.0))

    wrong = int((labels != predicted).sum())
    lower.suptitle(f"Test digits and what the network reads: {wrong} of {len(labels)} wrong")
    wrong_first = np.argsort(labels == predicted, kind="stable")
    cells = lower.subplots(ROWS, COLUMNS).flat
    for cell, which in zip(cells, wrong_first, strict=False):
        _draw_digit(cell, images[which, 0], int(labels[which]), int(predicted[which]))
    for cell in cells:  # those left over where there are few test digits
        cell.set_axis_off()
    figure.savefig(path)


def _draw_curve(axes: Axes, values: Sequence[float], name: str, last: str, color: str) -> None:
    axes.plot(range(1, len(values) + 1), values, color=color, marker=".")
    axes.set(xlabel="epoch", ylabel=name, title=f"{name}: {last} at the end")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)


def _draw_digit(axes: Axes, image: np.ndarray, label: int, predicted: int) -> None:
    right = label == predicted
    color = "black" if right else "red"
    axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(f"{predicted}" if right else f"{predicted}, is {label}", color=color, pad=3)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color="lightgray" if right else color, linewidth=1 if right else 2.5)
