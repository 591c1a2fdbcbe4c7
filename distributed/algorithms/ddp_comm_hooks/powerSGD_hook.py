"""PowerSGD: gradients of matrices are exchanged as products of two narrow ones.

Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
Optimization", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.generator import Generator
from tensorplug.core.futures import Future
from tensorplug.core.ops import cat, matmul, qr, randn

from ... import distributed_c10d as c10d
from ...reducer import GradBucket
from .default_hooks import mean

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What :func:`powerSGD_hook` remembers between iterations.

    Parameters
    ----------
    process_group : ProcessGroup or None
        Who takes part; by default all.
    matrix_approximation_rank : int
        The number of columns of the narrow matrices.
    start_powerSGD_iter : int
        From which iteration on gradients are compressed; before, they are averaged as they are.
    min_compression_rate : float
        A gradient is compressed if that divides its size by more than this.
    use_error_feedback : bool
        Add what compression left out to the next gradient.
    warm_start : bool
        Begin with the last iteration's matrix.
    orthogonalization_epsilon : float
        For torch's own orthogonalization; QR needs none.
    random_seed : int
        Of the first matrices, the same in every process.
    compression_stats_logging_frequency : int
        Not used.
    batch_tensors_with_same_shape : bool
        Not used.

    Examples
    --------
    >>> state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
    >>> model.register_comm_hook(state, powerSGD_hook)  # doctest: +SKIP
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                "because PowerSGD can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.rng = Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration, with its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compresses(self, rows: int, columns: int) -> bool:
        """Return whether a matrix of this size is worth compressing."""
        rank = min(rows, columns, self.matrix_approximation_rank)
        return (rows + columns) * rank * self.min_compression_rate < rows * columns


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients of a bucket, matrices by narrow factors and the others as they are.

    One step of the power method: P = M Q is averaged and made orthonormal, Q = Mᵀ P is averaged, and P Qᵀ
    stands for M. What that leaves out is added to the next gradient.

    Parameters
    ----------
    state : PowerSGDState
        What is remembered.
    bucket : GradBucket
        The gradients.

    Examples
    --------
    >>> state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
    >>> model.register_comm_hook(state, powerSGD_hook)  # doctest: +SKIP
    """
    group = state.process_group
    group = c10d._get_default_group() if group is None else group
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, flat)
    number = bucket.index()
    before = None
    if state.use_error_feedback:
        error = state.error_dict.get(number)
        if error is not None and error.numel() == flat.numel():
            flat.add_(error)
        before = flat.clone()
    whole: list[Tensor] = []
    matrices: list[Tensor] = []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.ndim > 1 else gradient
        compressed = matrix.ndim == 2 and state.compresses(*matrix.shape)
        (matrices if compressed else whole).append(matrix)
    size = c10d.get_world_size(group)
    rest = cat([gradient.reshape(-1) for gradient in whole]) if whole else None
    work = None
    if rest is not None:
        rest.div_(size)
        work = c10d.all_reduce(rest, group=group, async_op=True)
    if matrices:
        ranks = [min(*m.shape, state.matrix_approximation_rank) for m in matrices]
        qs = _first_factors(state, number, matrices, ranks)
        ps, flat_p = _stacked([matmul(m, q) for m, q in zip(matrices, qs, strict=True)])
        c10d.all_reduce(flat_p, group=group)
        ps = [qr(p)[0] for p in ps]
        qs, flat_q = _stacked([matmul(m.T, p) for m, p in zip(matrices, ps, strict=True)])
        flat_q.div_(size)
        c10d.all_reduce(flat_q, group=group)
        state.q_memory_dict[number] = flat_q
        for m, p, q in zip(matrices, ps, qs, strict=True):
            m.copy_(matmul(p, q.T))
    if work is not None:
        work.wait()
    if rest is not None:
        for gradient, piece in zip(whole, rest.split([g.numel() for g in whole]), strict=True):
            gradient.copy_(piece.view(gradient.shape))
    if before is not None:
        state.error_dict[number] = before.sub_(flat)
    state.maybe_increase_iter(bucket)
    future: Future[Tensor] = Future()
    future.set_result(flat)
    return future


def _first_factors(
    state: PowerSGDState, number: int, matrices: Sequence[Tensor], ranks: Sequence[int]
) -> list[Tensor]:
    """Return orthonormal matrices to begin with: the last iteration's, or random ones."""
    known = state.q_memory_dict.get(number) if state.warm_start else None
    shapes = [(m.shape[1], rank) for m, rank in zip(matrices, ranks, strict=True)]
    if known is not None:
        pieces = known.split([rows * columns for rows, columns in shapes])
        factors = [p.view(shape) for p, shape in zip(pieces, shapes, strict=True)]
    else:
        # drawn on the CPU, so that all devices have the same ones
        factors = [
            randn(shape, generator=state.rng).to(m.device, m.dtype)
            for m, shape in zip(matrices, shapes, strict=True)
        ]
    return [qr(factor)[0] for factor in factors]


def _stacked(matrices: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
    """Return views of one flat tensor that have the matrices' values, and the flat tensor."""
    flat = cat([matrix.reshape(-1) for matrix in matrices])
    pieces = flat.split([matrix.numel() for matrix in matrices])
    return [p.view(m.shape) for p, m in zip(pieces, matrices, strict=True)], flat
