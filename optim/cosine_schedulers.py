"""Schedulers along a cosine: CosineAnnealingLR, CosineAnnealingWarmRestarts."""

from __future__ import annotations

import math
from typing import Any

from .factor_schedulers import FactorLR
from .optimizer import Optimizer
from .scheduler_base import LRScheduler


class CosineAnnealingLR(FactorLR):
    r"""The rate along half a cosine from its initial value to `eta_min` and back.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    T_max : int
        Epochs from top to bottom.
    eta_min : float
        The lowest rate.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.

    Notes
    -----
    :math:`\eta_{min} + (\eta_0 - \eta_{min}) (1 + \cos(\pi t / T_{max})) / 2`
    (Loshchilov and Hutter, "SGDR", 2017).

    Examples
    --------
    >>> import tensorplug as tp
    >>> optimizer = tp.optim.SGD([tp.zeros(1)], lr=1.0)
    >>> scheduler = tp.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803 - torch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    @property
    def _floor(self) -> float:  # type: ignore[override]
        return self.eta_min

    def _factor(self, epoch: float) -> float:
        return 1.0 if epoch == 0 else (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate down to `eta_min`, again and again.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    T_0 : int
        Epochs until the first restart.
    T_mult : int
        How many times longer each following period is.
    eta_min : float
        The lowest rate.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803 - torch's name
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates at the present place of the period."""
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to a given one, which may be a fraction."""
        self._count_step()
        self._move(epoch)

    def _move(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
        else:
            start, length = 0, self.T_0
            while epoch >= start + length:
                start, length = start + length, length * self.T_mult
            self.T_cur, self.T_i = epoch - start, length
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())
