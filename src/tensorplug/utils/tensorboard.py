"""Curves, histograms, images and texts for TensorBoard, written by the package tensorboardX."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Self

from tensorplug.core import Tensor

from . import _pytree

__all__ = ["SummaryWriter"]

try:
    _tensorboardx = importlib.import_module("tensorboardX")
except ModuleNotFoundError as error:
    if error.name != "tensorboardX":
        raise
    raise ModuleNotFoundError(
        "tensorplug.utils.tensorboard writes through tensorboardX: pip install tensorboardX",
        name=__name__,
    ) from None


class SummaryWriter:
    """Writes event files that ``tensorboard --logdir runs`` shows.

    All of tensorboardX's ``add_scalar``, ``add_histogram``, ``add_image``, ``add_figure``, ``add_text``
    and the like are methods; where they take arrays, they take tensors of any device here.

    Parameters
    ----------
    log_dir : str or Path, optional
        The folder to write to; ``runs/`` with the date and the host's name.
    comment : str
        Appended to that name.
    **options
        Further options of tensorboardX's writer: `purge_step`, `max_queue`, `flush_secs`,
        `filename_suffix`.

    Raises
    ------
    ModuleNotFoundError
        By the import of this module, if tensorboardX is not installed.

    Examples
    --------
    .. code-block:: python

        from tensorplug.utils.tensorboard import SummaryWriter

        with SummaryWriter("runs/first") as writer:
            for step, loss in enumerate(losses):
                writer.add_scalar("loss", loss, step)
    """

    def __init__(self, log_dir: Any = None, comment: str = "", **options: Any) -> None:
        folder = None if log_dir is None else str(log_dir)
        self._writer = _tensorboardx.SummaryWriter(folder, comment, **options)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return getattr(self._writer, name)
    else:

        def __getattr__(self, name: str) -> Any: ...

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(n for n in dir(self._writer) if n[0] != "_")})

    def add_graph(self, *args: Any, **kwargs: Any) -> None:
        """Raise NotImplementedError: graphs are recorded op by op, there is none to write."""
        raise NotImplementedError(
            "add_graph(): tensorboardX writes graphs of torch alone; see tp.utils.summary and "
            "tp.autograd.visualize"
        )

    def flush(self) -> None:
        """Write what is waiting."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is waiting and close the files."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _reporting(name: str) -> Any:
    def call(self: SummaryWriter, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _pytree.tree_map(_array, (args, kwargs))
        return getattr(self._writer, name)(*args, **kwargs)

    call.__name__, call.__qualname__ = name, f"SummaryWriter.{name}"
    call.__doc__ = f"Write by tensorboardX's ``{name}``, which gets arrays in the place of tensors."
    return call


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


# On the class itself: programs ask it for its methods, as ``unittest.mock.Mock(spec=SummaryWriter)`` does.
for _name in dir(_tensorboardx.SummaryWriter):
    if _name.startswith("add_") and not hasattr(SummaryWriter, _name):
        setattr(SummaryWriter, _name, _reporting(_name))
