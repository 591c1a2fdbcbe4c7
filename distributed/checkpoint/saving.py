"""Writing and reading state that is divided among processes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import complex128
from tensorplug.core.ops import view_as_complex, view_as_real

from .. import distributed_c10d as c10d
from ..tensor import DTensor
from .storage import CheckpointError, FileSystemReader, FileSystemWriter


@runtime_checkable
class Stateful(Protocol):
    """What gives its state, and takes it: modules, optimizers, data loaders."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state over."""
        ...


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Write a state, each process the parts that it has; all of the group call it.

    A checkpoint appears whole or not at all: one that was there stays until the new one is complete.

    Parameters
    ----------
    state_dict : dict
        Tensors, divided ones, and other values, in dicts and lists; or objects with a ``state_dict``. Of what
        is not divided one process's values are written.
    checkpoint_id : path, optional
        The folder, on a file system that all processes share.
    storage_writer : FileSystemWriter, optional
        In place of `checkpoint_id`.
    planner : optional
        Not here.
    process_group : ProcessGroup, optional
        Who writes; by default all.
    no_dist : bool
        Write from this process alone.

    Raises
    ------
    CheckpointError
        In every process, if one of them could not write. What was there before is as it was.

    Examples
    --------
    >>> state = {"model": model, "optimizer": optimizer}  # doctest: +SKIP
    >>> tp.distributed.checkpoint.save(state, checkpoint_id="step-1000")  # doctest: +SKIP
    """
    _refuse_planner(planner)
    writer = storage_writer or FileSystemWriter(_folder(checkpoint_id))
    alone = no_dist or not c10d.is_initialized()
    rank = 0 if alone else c10d.get_rank(process_group)
    size = 1 if alone else c10d.get_world_size(process_group)
    outcome: Any
    values: dict[str, Any] = {}
    try:
        values = _flattened(_states(state_dict))
        outcome = [name for name, value in values.items() if not isinstance(value, DTensor)]
    except Exception as error:
        outcome = f"rank {rank}: {type(error).__name__}: {error}"
    outcomes: list[Any] = [(outcome, uuid.uuid4().hex[:12])]
    if not alone:
        outcomes = _everybody_s(outcomes[0], size, process_group)
    failed = [found for found, _ in outcomes if isinstance(found, str)]
    if failed:
        raise CheckpointError(f"the checkpoint was not written: {'; '.join(failed)}")
    generation = outcomes[0][1]
    try:
        with no_grad():
            mine = _share([names for names, _ in outcomes], rank)
            outcome = _write(writer, values, mine, rank, generation)
    except Exception as error:
        outcome = f"rank {rank}: {type(error).__name__}: {error}"
    outcomes = [outcome] if alone else _everybody_s(outcome, size, process_group)
    failed = [found for found in outcomes if isinstance(found, str)]
    if not failed and rank == 0:
        try:
            writer.finish(_merged(outcomes))
        except OSError as error:
            failed = [f"rank 0: {type(error).__name__}: {error}"]
    if not alone:
        told = [failed]
        c10d.broadcast_object_list(told, c10d.get_global_rank(_of(process_group), 0), process_group)
        failed = told[0]
    if failed:
        raise CheckpointError(f"the checkpoint was not written: {'; '.join(failed)}")


def _everybody_s(value: Any, size: int, group: Any) -> list[Any]:
    found: list[Any] = [None] * size
    c10d.all_gather_object(found, value, group)
    return found


def _share(names: list[list[str]], rank: int) -> set[str]:
    """Return what this process writes of the values that are not divided: each one process writes.

    States need not be alike: a stage of a pipeline has parameters that no other has.
    """
    owners: dict[str, list[int]] = {}
    for owner, known in enumerate(names):
        for name in known:
            owners.setdefault(name, []).append(owner)
    return {
        name
        for number, (name, having) in enumerate(sorted(owners.items()))
        if having[number % len(having)] == rank
    }


def _write(
    writer: FileSystemWriter, values: dict[str, Any], mine: set[str], rank: int, generation: str
) -> dict[str, Any]:
    """Write this process's share; return what it wrote."""
    file, others = f"__{rank}_{generation}.distcp", f"__{rank}_{generation}.objects"
    tensors: dict[str, Tensor] = {}
    entries: dict[str, Any] = {}
    objects: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Tensor):
            starts, local = _part(value)
            entry: dict[str, Any] = {
                "shape": _full_shape(value),
                "dtype": str(value.dtype),
                "parts": [],
            }
            writes = _is_first(value) if isinstance(value, DTensor) else name in mine
            if writes and local.numel():
                # A copy: the file format asks for memory of one's own.
                tensors[name] = _storable(local.to("cpu", copy=True).contiguous())
                entry["parts"] = [{"file": file, "start": starts, "shape": list(local.shape)}]
            entries[name] = entry
        elif name in mine:
            objects[name] = value
    writer.write_tensors(file, tensors)
    writer.write_objects(others, objects)
    return {"tensors": entries, "files": [file, others], "objects": [others]}


def _storable(local: Tensor) -> Tensor:
    """Return a tensor of a dtype that the file format knows."""
    return view_as_real(local) if local.dtype is complex128 else local


def _is_first(value: DTensor) -> bool:
    """Return whether this process is the first of those that have the same part."""
    mesh = value.device_mesh
    return all(
        [
            placement.is_shard() or mesh.get_local_rank(dim) == 0
            for dim, placement in enumerate(value.placements)
        ]
    )


def _merged(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the metadata of what all processes wrote."""
    tensors: dict[str, Any] = {}
    for outcome in outcomes:
        for name, entry in outcome["tensors"].items():
            known = tensors.setdefault(name, {**entry, "parts": []})
            known["parts"].extend(entry["parts"])
    together = {
        kind: [file for outcome in outcomes for file in outcome[kind]]
        for kind in ("files", "objects")
    }
    return {"tensors": tensors, **together}


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
    _refuse_planner(planner)
    reader = storage_reader or FileSystemReader(_folder(checkpoint_id))
    metadata = reader.read_metadata()
    states = _states(state_dict)
    wanted = _flattened(states)
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
    _replace(states, objects, "")
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _check(name: str, value: Any, tensors: dict[str, Any], objects: dict[str, Any]) -> None:
    if isinstance(value, Tensor):
        if name not in tensors:
            raise CheckpointError(f"Missing key in checkpoint state_dict: {name}.")
        shape = _full_shape(value)
        if shape != tensors[name]["shape"]:
            raise CheckpointError(
                f"{name} is of shape {tensors[name]['shape']} in the checkpoint, and of {shape} here"
            )
    elif name not in objects:
        raise CheckpointError(f"Missing key in checkpoint state_dict: {name}.")


def _read(reader: FileSystemReader, name: str, value: Tensor, parts: list[dict[str, Any]]) -> None:
    """Fill a tensor, or this process's part of one, from the parts that overlap with it."""
    starts, local = _part(value)
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


# --- states -----------------------------------------------------------------------------------


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the states of objects in their places."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _has_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        return any([_has_tensor(item) for item in value.values()])
    if isinstance(value, (list, tuple)):
        return any([_has_tensor(item) for item in value])
    return isinstance(value, Tensor)


def _walk(tree: Any, prefix: str, visit: Callable[[Any, Any, str], None]) -> None:
    """Call ``visit(container, key, name)`` for each value; dicts and lists with tensors are gone into."""
    pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in pairs:
        name = f"{prefix}{key}"
        if (isinstance(value, dict) and value) or (isinstance(value, list) and _has_tensor(value)):
            _walk(value, f"{name}.", visit)
        else:
            visit(tree, key, name)


def _flattened(states: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def note(tree: Any, key: Any, name: str) -> None:
        if name in found:
            raise ValueError(f"two values of the state are called {name!r}")
        found[name] = tree[key]

    _walk(states, "", note)
    return found


def _replace(states: Any, objects: dict[str, Any], prefix: str) -> None:
    def put(tree: Any, key: Any, name: str) -> None:
        if not isinstance(tree[key], Tensor):
            tree[key] = objects[name]

    _walk(states, prefix, put)


def _part(value: Tensor) -> tuple[list[int], Tensor]:
    """Return where in the whole this process's part begins, and the part."""
    if isinstance(value, DTensor):
        return value.extents()[0], value.to_local()
    return [0] * value.ndim, value.detach()


def _full_shape(value: Tensor) -> list[int]:
    return list(value.full_shape if isinstance(value, DTensor) else value.shape)


def _folder(checkpoint_id: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
    if checkpoint_id is None:
        raise ValueError("name the folder of the checkpoint: checkpoint_id=…")
    return checkpoint_id


def _of(group: Any) -> Any:
    return c10d._get_default_group() if group is None else group


def _refuse_planner(planner: Any) -> None:
    if planner is not None:
        raise NotImplementedError(
            "planners are not here: leave out of the state what is not to be written"
        )
