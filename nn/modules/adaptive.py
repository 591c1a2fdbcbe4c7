"""Softmax over very many classes, of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import cat, where

from .. import functional as F
from ..module import Module
from .container import ModuleList, Sequential
from .linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class ASMoutput(NamedTuple):
    """The log probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log softmax in which rare classes are reached through clusters of smaller projections.

    Parameters
    ----------
    in_features, n_classes : int
        Sizes of the input and of the output.
    cutoffs : sequence of int
        Where the clusters begin, in increasing order; classes are sorted by frequency.
    div_value : float
        By how much each cluster's projection is smaller than the one before.
    head_bias : bool
        Whether the head has a bias.
    device, dtype
        Where and of which dtype the parameters are made.

    Raises
    ------
    ValueError
        If the cutoffs are no increasing sequence below `n_classes`.

    Notes
    -----
    Grave et al., "Efficient softmax approximation for GPUs", 2016.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                f"where each value is between 1 and n_classes-1, got {cutoffs}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // (div_value ** (i + 1)))
            outer = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, device=device, dtype=dtype),
                    Linear(inner, outer, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """Return the log probabilities of targets (N,), and minus their mean."""
        if target_.ndim == 1:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension."
                )
            if input_.ndim != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found {input_.ndim}D"
                )
        elif target_.ndim == 0:
            if input_.ndim != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found {input_.ndim}D"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = target_.ndim > 0
        x = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if not target.is_meta and target.numel():
            low, high = int(target.min().item()), int(target.max().item())
            if low < 0 or high >= self.n_classes:
                raise RuntimeError(
                    f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                    f"[{low}, {high}] were found."
                )
        head = F.log_softmax(self.head(x), dim=1)
        near = where(target < self.shortlist_size, target, 0)
        output = head.gather(1, near.unsqueeze(1)).squeeze(1)
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            members = (target >= low).logical_and(target < high)
            rows = members.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            chosen = x.index_select(0, rows)
            logs = F.log_softmax(cluster(chosen), dim=1)
            relative = (target.index_select(0, rows) - low).unsqueeze(1)
            cluster_log = head.index_select(0, rows)[:, self.shortlist_size + i]
            output = output.index_copy(0, rows, logs.gather(1, relative).squeeze(1) + cluster_log)
        loss = -output.mean()
        return ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log probabilities of all classes, (N, n_classes)."""
        head = self.head(input)
        logs = F.log_softmax(head, dim=1)
        parts = [logs[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            inner = F.log_softmax(cluster(input), dim=1)
            parts.append(inner + logs[:, self.shortlist_size + i].unsqueeze(1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each row, (N,)."""
        return self.log_prob(input).argmax(1)
