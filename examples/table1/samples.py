"""Data for the six models, which comes with scikit-learn or from a rule: nothing is downloaded."""

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits

import tensorplug as tp
import tensorplug.nn.functional as F
from gnmt import BEGIN, END, PADDING

Batch = tuple[tp.Tensor, ...]

BRIGHTEST = 16  # the pixels of scikit-learn's digits count from 0 to 16
FACTORS = 8  # behind the ratings
LIKED = 0.8  # the score from which on an item counts as liked: about every fifth

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
)
ONES += " sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = [*"0123456789", *ONES.split(), *TENS.split(), "hundred", "thousand"]
TOKENS = {word: END + 1 + number for number, word in enumerate(WORDS)}
VOCABULARY = END + 1 + len(WORDS)


def images(batch: int, side: int, seed: int, device: str) -> Iterator[Batch]:
    """Yield scikit-learn's handwritten digits without end.

    Parameters
    ----------
    batch : int
        How many at a time.
    side : int
        The pixels they are enlarged to, from 8.
    seed : int
        Fixes the order.
    device : str
        Where to put them.

    Yields
    ------
    images, labels : Tensor
        ``(batch, 3, side, side)`` in float32 from -1 to 1, and ``(batch,)`` in int64 from 0 to 9.
    """
    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels / BRIGHTEST * 2 - 1).astype(np.float32).reshape(-1, 1, 8, 8)
    generator = np.random.default_rng(seed)
    while True:
        chosen = generator.integers(len(labels), size=batch)
        small = tp.from_numpy(pixels[chosen]).to(device)
        grey = F.interpolate(small, size=(side, side), mode="bilinear", align_corners=False)
        yield grey.expand(-1, 3, -1, -1).contiguous(), tp.from_numpy(labels[chosen]).to(device)


def spell(number: int) -> list[str]:
    """Return the English words for a number below a million.

    >>> " ".join(spell(40_312))
    'forty thousand three hundred twelve'
    """
    if number >= 1000:
        return [
            *spell(number // 1000),
            "thousand",
            *(spell(number % 1000) if number % 1000 else []),
        ]
    if number >= 100:
        return [*spell(number // 100), "hundred", *(spell(number % 100) if number % 100 else [])]
    if number >= 20:
        tens = TENS.split()[number // 10 - 2]
        return [tens, *(spell(number % 10) if number % 10 else [])]
    return [ONES.split()[number]]


def sentences(batch: int, length: int, seed: int, device: str) -> Iterator[Batch]:
    """Yield numbers in digits and their translation into English words, without end.

    Parameters
    ----------
    batch : int
        How many at a time.
    length : int
        How many tokens both sides have at least. A sentence holds several numbers, so that it has about
        that many; shorter ones are padded.
    seed : int
        Fixes the numbers.
    device : str
        Where to put them.

    Yields
    ------
    source, target : Tensor
        Tokens ``(batch, S)`` and ``(batch, T)`` in int64, padded with 0. The target begins with 1 and ends
        with 2.
    """
    generator = np.random.default_rng(seed)
    while True:
        digits, words = [], []
        for _ in range(batch):
            source, target = [], [BEGIN]
            while len(target) < length:
                number = int(generator.integers(10 ** generator.integers(1, 7)))
                source += [TOKENS[digit] for digit in str(number)]
                target += [TOKENS[word] for word in spell(number)]
            digits.append(source)
            words.append([*target, END])
        yield _padded(digits, length, device), _padded(words, length, device)


def _padded(rows: list[list[int]], length: int, device: str) -> tp.Tensor:
    table = np.full((len(rows), max(length, *map(len, rows))), PADDING, dtype=np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return tp.from_numpy(table).to(device)


def ratings(batch: int, users: int, items: int, seed: int, device: str) -> Iterator[Batch]:
    """Yield pairs of a user and an item, and whether the one likes the other, without end.

    Parameters
    ----------
    batch : int
        How many at a time.
    users, items : int
        How many there are.
    seed : int
        Fixes what is liked and the order.
    device : str
        Where to put them.

    Yields
    ------
    users, items, labels : Tensor
        ``(batch,)``, in int64, int64 and float32.

    Notes
    -----
    Every user and every item has eight numbers, drawn from N(0, 1) and scaled so that the product of the two
    has variance 1. A user likes an item if this product is above 0.8: a matrix of rank 8, cut off.
    """
    generator = np.random.default_rng(seed)
    tastes = generator.standard_normal((users, FACTORS)) / FACTORS**0.25
    kinds = generator.standard_normal((items, FACTORS)) / FACTORS**0.25
    while True:
        who = generator.integers(users, size=batch)
        what = generator.integers(items, size=batch)
        liked = ((tastes[who] * kinds[what]).sum(1) > LIKED).astype(np.float32)
        yield tuple(tp.from_numpy(array).to(device) for array in (who, what, liked))
