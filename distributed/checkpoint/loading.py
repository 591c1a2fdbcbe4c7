"""Reading state that is divided among processes, however it was divided when it was written."""

from __future__ import annotations

import os
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import view_as_complex

from .stateful import (
    Stateful,
    flattened,
    folder,
    full_shape,
    part_of,
    refuse_planner,
    replace,
    states_of,
)
from .storage import CheckpointError, FileSystemReader


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,  # each process reads by itself
    no_dist: bool = False,
) -> None:
    """Read a state into tensors that are there, each process the parts that it has.

    The checkpoint may come from another number of processes, and be divided otherwise.

    Parameters
    ----------
    state_dict : dict
        As it was given to :func:`save`, or some of it. Tensors are written to, other values replaced.
    checkpoint_id : path, optional
        The folder.
    storage_reader : FileSystemReader, optional
        In place of `checkpoint_id`.
    planner : optional
        Not here.
    process_group, no_dist
        Without effect: processes read by themselves.

    Raises
    ------
    CheckpointError
        If there is no checkpoint, something is not in it, or of another shape. Nothing has been changed then.

    Examples
    --------
    >>> state = {"model": model, "optimizer": optimizer}  # doctest: +SKIP
    >>> tp.distributed.checkpoint.load(state, checkpoint_id="step-1000")  # doctest: +SKIP
    """
    refuse_planner(planner)
    reader = storage_reader or FileSystemReader(folder(checkpoint_id))
    metadata = reader.read_metadata()
    states = states_of(state_dict)
    wanted = flattened(states)
    objects: dict[str, Any] = {}
    for file in metadata["objects"]:
        objects.update(reader.read_objects(file))
    for name, value in wanted.items():
        _check(name, value, metadata["tensors"], objects)
    try:
        with no_grad():
            for name, value in wanted.items():
                if isinstance(value, Tensor):
                    _read(reader, name, value, metadata["tensors"][name]["parts"])
    finally:
        reader.close()
    replace(states, objects, "")
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _check(name: str, value: Any, tensors: dict[str, Any], objects: dict[str, Any]) -> None:
    if isinstance(value, Tensor):
        if name not in tensors:
            raise CheckpointError(f"Missing key in checkpoint state_dict: {name}.")
        shape = full_shape(value)
        if shape != tensors[name]["shape"]:
            raise CheckpointError(
                f"{name} is of shape {tensors[name]['shape']} in the checkpoint, and of {shape} here"
            )
    elif name not in objects:
        raise CheckpointError(f"Missing key in checkpoint state_dict: {name}.")


def _read(reader: FileSystemReader, name: str, value: Tensor, parts: list[dict[str, Any]]) -> None:
    """Fill a tensor, or this process's part of one, from the parts that overlap with it."""
    starts, local = part_of(value)
    for part in parts:
        theirs: list[slice] = []
        ours: list[slice] = []
        for start, length, begin, extent in zip(
            starts, local.shape, part["start"], part["shape"], strict=True
        ):
            first, last = max(start, begin), min(start + length, begin + extent)
            theirs.append(slice(first - begin, max(last, first) - begin))
            ours.append(slice(first - start, max(last, first) - start))
        if all([piece.stop > piece.start for piece in ours]):
            found = reader.read_part(part["file"], name, tuple(theirs))
            target = local[tuple(ours)] if ours else local
            target.copy_(view_as_complex(found) if found.ndim > target.ndim else found)
