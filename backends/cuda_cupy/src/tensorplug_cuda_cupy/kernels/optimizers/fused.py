"""The steps of optimizers, many tensors to a launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from ... import sources
from ..._cupy import address, cp
from ...dtypes import name_of

# As in sources/batches.cuh.
_TENSORS, _BLOCKS, _CHUNK, _LISTS = 30, 320, 16384, 5
_MOST_CHUNKS = 1 << 16
BATCH = np.dtype(
    [
        ("address", np.uint64, (_LISTS, _TENSORS)),
        ("count", np.int64, _TENSORS),
        ("rate", np.float64, _TENSORS),
        ("root", np.float64, _TENSORS),
        ("more", np.float64, _TENSORS),
        ("step", np.uint64, _TENSORS),
        ("first", np.uint16, _BLOCKS),
        ("tensor", np.uint8, _BLOCKS),
    ]
)


def build(table: KernelTable) -> None:
    """Add the kernels to `table`; those of halves compute in float32 and round what they write."""
    for step in (sgd_step, adam_step, adagrad_step, rmsprop_step):
        table.add(f"optim.{step.__name__}", step, dtypes=FLOATS)


def batches(
    lists: Sequence[Sequence[Any]], further: Mapping[str, Sequence[float]]
) -> Iterator[tuple[Any, int]]:
    """Yield arguments for launches, and how many blocks each takes.

    Parameters
    ----------
    lists : sequence of sequence of array
        Parameters, gradients, states: of each parameter one, row by row in memory; a list may be empty.
    further : mapping of str to sequence
        What differs from parameter to parameter, by the field of the batch that holds it.
    """
    places = np.zeros((len(lists), len(lists[0])), np.uint64)
    for row, arrays in zip(places, lists, strict=True):
        if arrays:
            row[:] = [address(array) for array in arrays]
    columns = {name: np.asarray(values) for name, values in further.items()}
    for template, owners, blocks in _layout(tuple([array.size for array in lists[0]])):
        batch = template.copy()
        batch["address"][0, : len(lists), : owners.size] = places[:, owners]
        for name, values in columns.items():
            batch[name][0, : owners.size] = values[owners]
        yield sources.by_value(batch), blocks


@lru_cache(maxsize=64)
def _layout(sizes: tuple[int, ...]) -> list[tuple[Any, Any, int]]:
    """Return batches without addresses for tensors of some sizes, whose each one is, and how many blocks."""
    found: list[tuple[Any, list[int], int]] = []
    batch, owners, blocks = np.zeros(1, BATCH), list[int](), 0
    for tensor, size in enumerate(sizes):
        chunks, done = -(-size // _CHUNK), 0
        while done < chunks:
            if len(owners) == _TENSORS or blocks == _BLOCKS:
                found.append((batch, owners, blocks))
                batch, owners, blocks = np.zeros(1, BATCH), [], 0
            taken = min(chunks - done, _BLOCKS - blocks)
            batch["count"][0, len(owners)] = size
            batch["first"][0, blocks : blocks + taken] = range(done, done + taken)
            batch["tensor"][0, blocks : blocks + taken] = len(owners)
            owners.append(tensor)
            done += taken
            blocks += taken
    if blocks:
        found.append((batch, owners, blocks))
    return [(batch, np.array(owners), blocks) for batch, owners, blocks in found]


def take_step(
    name: str,
    written: Sequence[Sequence[Any]],
    grads: Sequence[Any],
    options: tuple[Any, ...],
    **further: Sequence[float],
) -> None:
    """Launch a step over lists of arrays: those that are written, the parameters first, and gradients.

    An array that does not lie row by row is worked on in a copy.
    """
    if not written[0]:
        return
    if any([array.size > _CHUNK * _MOST_CHUNKS for array in written[0]]):
        raise RuntimeError(f"optim.{name}: a tensor has more than {_CHUNK * _MOST_CHUNKS} elements")
    dense = [[_dense(array) for array in arrays] for arrays in written]
    lists = [dense[0], [_dense(gradient) for gradient in grads], *dense[1:]]
    dtype = name_of(written[0][0])
    for batch, blocks in batches(lists, further):
        sources.launch("optimizers", name, dtype, blocks, (batch, *options))
    for arrays, copies in zip(written, dense, strict=True):
        for array, copy in zip(arrays, copies, strict=True):
            if copy is not array:
                array[...] = copy


def _dense(array: Any) -> Any:
    return array if array.flags.c_contiguous else cp.ascontiguousarray(array)


def flags(*values: bool) -> list[Any]:
    """Return switches as kernels take them."""
    return [np.int32(value) for value in values]


def numbers(*values: float) -> list[Any]:
    """Return numbers as kernels take them."""
    return [np.float64(value) for value in values]


def sgd_step(
    params: list[Any],
    grads: list[Any],
    momentum_buffers: list[Any],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    """Take a step of stochastic gradient descent."""
    options = (
        *numbers(momentum, dampening, weight_decay),
        *flags(nesterov, maximize, first, bool(momentum_buffers)),
    )
    take_step("sgd_step", [params, momentum_buffers], grads, options, rate=[lr] * len(params))


def adam_step(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Take a step of Adam, or of AdamW."""
    rates = [lr / (1 - beta1**step) for step in steps]
    roots = [(1 - beta2**step) ** 0.5 for step in steps]
    options = (
        *numbers(lr, beta1, beta2, weight_decay, eps),
        *flags(amsgrad, maximize, decoupled),
    )
    written = [params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else []]
    take_step("adam_step", written, grads, options, rate=rates, root=roots)


def adagrad_step(
    params: list[Any],
    grads: list[Any],
    state_sums: list[Any],
    steps: list[float],
    lr: float,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of Adagrad."""
    rates = [lr / (1 + (step - 1) * lr_decay) for step in steps]
    options = (*numbers(weight_decay, eps), *flags(maximize))
    take_step("adagrad_step", [params, state_sums], grads, options, rate=rates)


def rmsprop_step(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    momentum_buffers: list[Any],
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    """Take a step of RMSprop."""
    written = [params, square_avgs, grad_avgs if centered else []]
    written.append(momentum_buffers if momentum > 0 else [])
    options = (*numbers(alpha, eps, weight_decay, momentum), *flags(centered, maximize))
    take_step("rmsprop_step", written, grads, options, rate=[lr] * len(params))
