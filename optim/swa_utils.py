"""Averages of the weights over training: SWA and exponential moving averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal, TypeAlias

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import int64
from tensorplug.core.ops import zeros
from tensorplug.nn.module import Module
from tensorplug.nn.modules.batchnorm import _BatchNorm

from .optimizer import Optimizer
from .scheduler_base import LRScheduler, per_group, plain

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage: TypeAlias = Callable[[list[Tensor], list[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _move_towards(
    averaged: list[Tensor],
    current: list[Tensor],
    share: float,
    counts: Callable[[Tensor, Tensor], Tensor],
) -> None:
    """Write averages into tensors; whole numbers, which `lerp_` does not take, get what `counts` says."""
    with no_grad():
        for mean, value in zip(averaged, current, strict=True):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(value, share)
            else:
                mean.copy_(counts(mean, value))


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function ``decay * average + (1 - decay) * current``, one tensor at a time."""
    _check_decay(decay)

    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:  # noqa: ARG001
        with no_grad():
            return decay * averaged + (1 - decay) * current

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return the function that writes exponential moving averages into a list of tensors."""
    _check_decay(decay)

    def average(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:  # noqa: ARG001
        _move_towards(averaged, current, 1 - decay, lambda a, c: a * decay + c * (1 - decay))

    return average


def get_swa_avg_fn() -> Average:
    """Return the function that gives the plain mean of all models so far, one tensor at a time."""

    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return the function that writes the plain means of all models so far into a list of tensors."""

    def average(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        count = plain(num_averaged) + 1
        _move_towards(averaged, current, 1 / count, lambda a, c: a + (c - a) / count)

    return average


class AveragedModel(Module):
    """A copy of a model whose weights are averages of the model's over training.

    Parameters
    ----------
    model : Module
        What to average; it is copied.
    device : Device, optional
        Where the copy is to be.
    avg_fn : callable, optional
        ``avg_fn(average, current, num_averaged)`` returns the new average of one tensor.
    multi_avg_fn : callable, optional
        ``multi_avg_fn(averages, currents, num_averaged)`` writes the new averages of a list of tensors.
        Without either it is the plain mean (Izmailov et al., 2018).
    use_buffers : bool
        Whether buffers are averaged, too; otherwise the copy has the model's latest.

    Raises
    ------
    AssertionError
        If both functions are given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = tp.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged(tp.ones(1, 1)).item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", zeros((), dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged copy."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present weights of the model into the averages."""
        averages, currents = self._tensors(self.module), self._tensors(model)
        with no_grad():
            pairs = [
                (mean.detach(), value.detach().to(mean.device))
                for mean, value in zip(averages, currents, strict=True)
            ]
            if plain(self.n_averaged) == 0:
                for mean, value in pairs:
                    mean.copy_(value)
            elif self.avg_fn is not None:
                for mean, value in pairs:
                    count = self.n_averaged.to(mean.device)
                    mean.copy_(self.avg_fn(mean, value, count))
            else:
                average = self.multi_avg_fn or get_swa_multi_avg_fn()
                alike: dict[Any, list[tuple[Tensor, Tensor]]] = {}
                for mean, value in pairs:
                    alike.setdefault((mean.device, mean.dtype), []).append((mean, value))
                for (device, _), several in alike.items():
                    means, values = zip(*several, strict=True)
                    average(list(means), list(values), self.n_averaged.to(device))
            if not self.use_buffers:
                for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                    ours.copy_(theirs.detach())
            self.n_averaged += 1

    def _tensors(self, model: Module) -> list[Tensor]:
        buffers: Iterable[Tensor] = model.buffers() if self.use_buffers else ()
        return list(itertools.chain(model.parameters(), buffers))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running means and variances of a model's batch normalisations anew.

    Parameters
    ----------
    loader : iterable
        Gives batches; of a list or tuple the first entry is the model's input.
    model : Module
        Its layers of batch normalisation get the plain mean over all batches.
    device : Device, optional
        Where the batches are brought to.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.BatchNorm1d(1)
    >>> update_bn([tp.tensor([[1.0], [3.0]]), tp.tensor([[5.0], [7.0]])], model)
    >>> model.running_mean
    tensor([4.])
    """
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    was_training = model.training
    model.train()
    try:
        with no_grad():
            for batch in loader:
                inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(inputs if device is None else inputs.to(device))
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """The rate from its present value to a constant one, over some epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    swa_lr : float or list of float
        The constant rate, of all groups or of each.
    anneal_epochs : int
        Over how many epochs.
    anneal_strategy : {"cos", "linear"}
        Along half a cosine or a line.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.

    Raises
    ------
    ValueError
        If a number of rates or epochs does not fit, or the strategy is unknown.

    Examples
    --------
    >>> import tensorplug as tp
    >>> optimizer = tp.optim.SGD([tp.zeros(1)], lr=1.0)
    >>> scheduler = SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.75]
    [0.5]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        epochs: object = anneal_epochs
        if not isinstance(epochs, int) or epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: float) -> float:
        """Return how far from the first rate to the constant one a step is."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """Return the rates of the present epoch; other schedulers may have set the present ones."""
        # Counted from when this scheduler took over.
        step = max(1 if self.anneal_epochs == 0 else 0, self._step_count - 1)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, end = plain(group["lr"]), group["swa_lr"]
            first = end if before == 1 else (rate - before * end) / (1 - before)
            rates.append(end * now + first * (1 - now))
        return rates
