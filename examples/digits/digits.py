"""The 1,797 digits that scikit-learn carries, as tensors."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits as read_digits
from sklearn.model_selection import train_test_split

import tensorplug as tp
import tensorplug.nn.functional as F

SIDE = 8  # pixels
BRIGHTEST = 16  # the pixels count from 0 to 16
SPLIT_SEED = 1  # of its own, so that every run and every checkpoint has the same test digits


class Digits(NamedTuple):
    """Images ``(N, 1, 8, 8)`` in float32 from 0 to 1, and labels ``(N,)`` in int64."""

    train_images: tp.Tensor
    train_labels: tp.Tensor
    test_images: tp.Tensor
    test_labels: tp.Tensor


def load_digits(device: str = "cpu") -> Digits:
    """Read the digits from scikit-learn's package and set a fifth of them aside for testing.

    Parameters
    ----------
    device : str
        Where the tensors go.

    Returns
    -------
    Digits
        80 % for training and 20 % for testing, with the same share of each digit in both.
    """
    images, labels = read_digits(return_X_y=True)
    images = (images / BRIGHTEST).astype(np.float32).reshape(-1, 1, SIDE, SIDE)
    labels = labels.astype(np.int64)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.2, stratify=labels, random_state=SPLIT_SEED
    )
    arrays = (train_images, train_labels, test_images, test_labels)
    return Digits(*(tp.from_numpy(array).to(device) for array in arrays))


def shift_randomly(images: tp.Tensor) -> tp.Tensor:
    """Move each image by -1, 0 or 1 pixel in both directions; what enters is black.

    Parameters
    ----------
    images : Tensor
        Shape ``(N, 1, 8, 8)``.

    Returns
    -------
    Tensor
        Of the same shape.
    """
    count = len(images)
    shifts = tp.randint(0, 3, (2, count, 1)).to(images.device)
    rows, columns = shifts + tp.arange(SIDE, device=images.device)
    which = tp.arange(count, device=images.device)
    padded = F.pad(images, (1, 1, 1, 1))
    return padded[which[:, None, None], 0, rows[:, :, None], columns[:, None, :]].unsqueeze(1)
