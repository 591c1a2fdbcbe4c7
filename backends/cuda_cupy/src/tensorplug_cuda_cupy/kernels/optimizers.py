"""The steps of optimizers, many tensors to a launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import sources
from .._cupy import address, cp
from ..dtypes import SINGLE_AND_DOUBLE, name_of

# As in sources/optimizers.cu.
_TENSORS, _BLOCKS, _CHUNK, _LISTS = 40, 320, 16384, 5
_MOST_CHUNKS = 1 << 16
BATCH = np.dtype(
    [
        ("address", np.uint64, (_LISTS, _TENSORS)),
        ("count", np.int64, _TENSORS),
        ("rate", np.float64, _TENSORS),
        ("root", np.float64, _TENSORS),
        ("first", np.uint16, _BLOCKS),
        ("tensor", np.uint8, _BLOCKS),
    ]
)


def build(table: KernelTable) -> None:
    """Add the kernels to `table`; half precision is left to the bodies, which round as torch does."""
    for step in (sgd_step, adam_step, adagrad_step, rmsprop_step):
        table.add(f"optim.{step.__name__}", step, dtypes=SINGLE_AND_DOUBLE)


def batches(
    lists: Sequence[Sequence[Any]], rates: Sequence[float], roots: Sequence[float]
) -> Iterator[tuple[Any, int]]:
    """Yield arguments for launches, and how many blocks each takes.

    Parameters
    ----------
    lists : sequence of sequence of array
        Parameters, gradients, states: of each parameter one, row by row in memory; a list may be empty.
    rates, roots : sequence of float
        What differs from parameter to parameter.
    """
    batch = np.zeros(1, BATCH)
    tensors = blocks = 0
    for i, parameter in enumerate(lists[0]):
        chunks = -(-parameter.size // _CHUNK)
        done = 0
        while done < chunks:
            if tensors == _TENSORS or blocks == _BLOCKS:
                yield batch, blocks
                batch = np.zeros(1, BATCH)
                tensors = blocks = 0
            for n, arrays in enumerate(lists):
                batch["address"][0, n, tensors] = address(arrays[i]) if arrays else 0
            batch["count"][0, tensors] = parameter.size
            batch["rate"][0, tensors] = rates[i]
            batch["root"][0, tensors] = roots[i]
            taken = min(chunks - done, _BLOCKS - blocks)
            batch["first"][0, blocks : blocks + taken] = range(done, done + taken)
            batch["tensor"][0, blocks : blocks + taken] = tensors
            done += taken
            blocks += taken
            tensors += 1
    if blocks:
        yield batch, blocks


def _step(
    name: str,
    written: Sequence[Sequence[Any]],
    grads: Sequence[Any],
    rates: Sequence[float],
    options: tuple[Any, ...],
    roots: Sequence[float] | None = None,
) -> None:
    """Launch a step over lists of arrays: those that are written, the parameters first, and gradients.

    An array that does not lie row by row is worked on in a copy.
    """
    if not written[0]:
        return
    if any([array.size > _CHUNK * _MOST_CHUNKS for array in written[0]]):
        raise RuntimeError(f"optim.{name}: a tensor has more than {_CHUNK * _MOST_CHUNKS} elements")
    dense = [[cp.ascontiguousarray(array) for array in arrays] for arrays in written]
    gradients = [cp.ascontiguousarray(gradient) for gradient in grads]
    lists = [dense[0], gradients, *dense[1:]]
    dtype = name_of(written[0][0])
    for batch, blocks in batches(lists, rates, roots or [1.0] * len(rates)):
        sources.launch("optimizers", name, dtype, blocks, (batch, *options))
    for arrays, copies in zip(written, dense, strict=True):
        for array, copy in zip(arrays, copies, strict=True):
            if not array.flags.c_contiguous:
                array[...] = copy


def _flags(*values: bool) -> list[Any]:
    return [np.int32(value) for value in values]


def _numbers(*values: float) -> list[Any]:
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
        *_numbers(momentum, dampening, weight_decay),
        *_flags(nesterov, maximize, first, bool(momentum_buffers)),
    )
    _step("sgd_step", [params, momentum_buffers], grads, [lr] * len(params), options)


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
        *_numbers(lr, beta1, beta2, weight_decay, eps),
        *_flags(amsgrad, maximize, decoupled),
    )
    written = [params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else []]
    _step("adam_step", written, grads, rates, options, roots)


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
    options = (*_numbers(weight_decay, eps), *_flags(maximize))
    _step("adagrad_step", [params, state_sums], grads, rates, options)


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
    options = (*_numbers(alpha, eps, weight_decay, momentum), *_flags(centered, maximize))
    _step("rmsprop_step", written, grads, [lr] * len(params), options)
