"""The base of learning-rate schedulers."""

from __future__ import annotations

import warnings
from typing import Any

from tensorplug.core import Tensor

from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler."
)


def check_optimizer(optimizer: Any) -> Optimizer:
    """Return `optimizer`; raise TypeError if it is none."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def set_value(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor keeps its identity."""
    present = group[name]
    if isinstance(present, Tensor):
        present.fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def copied(value: Any) -> Any:
    """Return a copy of a tensor, which its owner may write to; anything else as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return `value` as a list with one entry per group, of which each tensor is a copy.

    Raises
    ------
    ValueError
        If it is a list or tuple of another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return [copied(each) for each in value]


def plain(value: Any) -> Any:
    """Return a tensor's number; anything else as it is."""
    return value.item() if isinstance(value, Tensor) else value


class LRScheduler:
    """Base of schedulers: a subclass defines :meth:`get_lr`.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set; once now, then at each :meth:`step`.
    last_epoch : int
        The number of steps done before; -1 starts anew from the present learning rates.

    Raises
    ------
    TypeError
        If `optimizer` is none.
    KeyError
        If it is to be resumed but its groups have no ``"initial_lr"``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Halving(LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
    >>> scheduler = Halving(tp.optim.SGD([tp.zeros(1)], lr=1.0))
    >>> scheduler.optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    #: Attributes that ``state_dict`` leaves out.
    _transient: tuple[str, ...] = ("optimizer", "_own_step")
    _is_initial: bool = False
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an "
                    "optimizer"
                )
        self.base_lrs: list[Any] = [plain(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch: float = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the learning rates that training begins with."""
        self._step_count = 0
        self._own_step = vars(self.optimizer).get("step")  # of the optimizer, if not its class's
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """Return the learning rate of each group at ``self.last_epoch``, given the present ones."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr")

    def get_last_lr(self) -> list[Any]:
        """Return the learning rates that were set last."""
        return self._last_lr

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch, or of a given one.

        Parameters
        ----------
        epoch : int, optional
            Deprecated in torch: go to this epoch, by the closed form where there is one.
        """
        self._count_step()
        if epoch is not None:
            warnings.warn(
                EPOCH_DEPRECATION_WARNING,
                UserWarning,
                stacklevel=2,
            )
        self._move(epoch)

    def _count_step(self) -> None:
        self._step_count += 1
        if self._step_count != 2:
            return
        if vars(self.optimizer).get("step") is not vars(self).get("_own_step"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                "`lr_scheduler.step()`. See "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=3,
            )
        elif not self.optimizer._steps_taken:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them the "
                "other way round, else the first value of the learning rate schedule is skipped. See "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=3,
            )

    def _move(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one, and set the learning rates."""
        if epoch is None:
            self.last_epoch += 1
            values = self.get_lr()
        else:
            self.last_epoch = epoch
            values = self._closed_form()
        self._set(values)

    def _closed_form(self) -> list[Any]:
        """Return the learning rates at ``self.last_epoch``, whatever the present ones are."""
        return self.get_lr()

    def _set(self, values: list[Any]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", value)
        self._last_lr = self._present()

    def _present(self) -> list[Any]:
        """Return the learning rates of the groups as they are."""
        return [plain(group["lr"]) for group in self.optimizer.param_groups]

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer, as plain data."""
        return {name: value for name, value in self.__dict__.items() if name not in self._transient}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned; load the optimizer's state as well."""
        self.__dict__.update(state_dict)
