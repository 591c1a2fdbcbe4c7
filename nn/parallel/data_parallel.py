"""One module on several devices of one process, as far as there are several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core.device.device import Device

from ..module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls a module, and has it in its state dict under ``module``.

    torch splits the batch over several devices here, and calls the module as it is where there is none. This
    class always does the latter.

    Parameters
    ----------
    module : Module
        What is called.
    device_ids : sequence of int or Device, optional
        Where torch would run it; at most one.
    output_device : int or Device, optional
        Where torch would bring the result.
    dim : int
        The dimension that torch would split.

    Raises
    ------
    NotImplementedError
        If `device_ids` names several.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.DataParallel(tp.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | Device] | None = None,
        output_device: int | Device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        _check(device_ids)
        self.module = module
        self.dim = dim
        self.device_ids = [] if device_ids is None else list(device_ids)
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | Device] | None = None,
    output_device: int | Device | None = None,  # noqa: ARG001
    dim: int = 0,  # noqa: ARG001
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module on inputs, a tuple or a single one; see :class:`DataParallel`."""
    _check(device_ids)
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))


def _check(device_ids: Sequence[int | Device] | None) -> None:
    if device_ids is not None and len(device_ids) > 1:
        raise NotImplementedError(
            f"a module is not split over several devices, got device_ids={list(device_ids)}; start a "
            "process per device instead"
        )
