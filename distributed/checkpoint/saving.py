"""Writing state that is divided among processes."""

from __future__ import annotations

import copy
import os
import threading
import uuid
from concurrent.futures import Future
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import complex128
from tensorplug.core.ops import view_as_real

from .. import distributed_c10d as c10d
from ..tensor import DTensor
from .stateful import flattened, folder, full_shape, of, part_of, refuse_planner, states_of
from .storage import CheckpointError, FileSystemWriter


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
    saving = _Saving(state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist)
    saving.write()
    saving.finish()


class _Saving:
    """A checkpoint that is being written: what processes agree on before, what each writes, and the end."""

    def __init__(
        self,
        state_dict: dict[str, Any],
        checkpoint_id: str | os.PathLike[str] | None,
        storage_writer: FileSystemWriter | None,
        planner: Any,
        process_group: Any,
        no_dist: bool = False,
        *,
        copies: bool = False,
    ) -> None:
        refuse_planner(planner)
        self.writer = storage_writer or FileSystemWriter(folder(checkpoint_id))
        self.group = process_group
        self.alone = no_dist or not c10d.is_initialized()
        self.rank = 0 if self.alone else c10d.get_rank(process_group)
        self.values: dict[str, Any] = {}
        self.outcome: Any
        try:
            self.values = flattened(states_of(state_dict))
            if copies:
                self.values = {name: _copied(value) for name, value in self.values.items()}
            outcome: Any = [n for n, value in self.values.items() if not isinstance(value, DTensor)]
        except Exception as error:
            outcome = self._said(error)
        outcomes = self._everybody_s((outcome, uuid.uuid4().hex[:12]))
        self._refuse([found for found, _ in outcomes if isinstance(found, str)])
        self.generation = outcomes[0][1]
        self.mine = _share([names for names, _ in outcomes], self.rank)

    def write(self) -> None:
        """Write this process's share; nobody is talked to."""
        try:
            with no_grad():
                self.outcome = _write(
                    self.writer, self.values, self.mine, self.rank, self.generation
                )
        except Exception as error:
            self.outcome = self._said(error)

    def finish(self) -> None:
        """Have the checkpoint appear, if everybody could write."""
        outcomes = self._everybody_s(self.outcome)
        failed = [found for found in outcomes if isinstance(found, str)]
        if not failed and self.rank == 0:
            try:
                self.writer.finish(_merged(outcomes))
            except OSError as error:
                failed = [self._said(error)]
        if not self.alone:
            told = [failed]
            c10d.broadcast_object_list(told, c10d.get_global_rank(of(self.group), 0), self.group)
            failed = told[0]
        self._refuse(failed)

    def _said(self, error: Exception) -> str:
        return f"rank {self.rank}: {type(error).__name__}: {error}"

    def _refuse(self, failed: list[str]) -> None:
        if failed:
            raise CheckpointError(f"the checkpoint was not written: {'; '.join(failed)}")

    def _everybody_s(self, value: Any) -> list[Any]:
        if self.alone:
            return [value]
        found: list[Any] = [None] * c10d.get_world_size(self.group)
        c10d.all_gather_object(found, value, self.group)
        return found


class _AsyncSave(Future[None]):
    """Writes in a thread; whoever asks for the result brings the processes together."""

    def __init__(self, saving: _Saving) -> None:
        super().__init__()
        self._saving = saving
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        self._saving.write()
        if self._saving.alone:  # there is nobody to wait for
            self._end()

    def _end(self) -> None:
        try:
            self._saving.finish()
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(None)

    def _wait(self) -> None:
        self._thread.join()
        if not self.done():
            self._end()

    def result(self, timeout: float | None = None) -> None:
        """Wait until the checkpoint is there; all processes call it."""
        self._wait()
        super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what went wrong, or None; all processes call it."""
        self._wait()
        return super().exception(timeout)


def _copied(value: Any) -> Any:
    """Return what may not change while it is written as a copy."""
    if isinstance(value, DTensor):
        return value.like(value.to_local().clone())
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    **options: Any,
) -> Future[None]:
    """Copy a state, and write it in a thread while the program goes on; all of the group call it.

    The processes talk about it before this returns, and when ``result()`` of the future is asked for, which
    all of them do: the checkpoint appears then. Until then the one before stays.

    Parameters
    ----------
    state_dict, checkpoint_id, storage_writer, planner, process_group
        As in :func:`save`.
    **options
        torch's, of how the copies are made and written: accepted for its sake.

    Returns
    -------
    concurrent.futures.Future
        Of None; it raises what :func:`save` raises.

    Examples
    --------
    >>> saved = tp.distributed.checkpoint.async_save(state, checkpoint_id="step")  # doctest: +SKIP
    >>> train_on()  # doctest: +SKIP
    >>> saved.result()  # doctest: +SKIP
    """
    return _AsyncSave(
        _Saving(state_dict, checkpoint_id, storage_writer, planner, process_group, copies=True)
    )


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
            starts, local = part_of(value)
            entry: dict[str, Any] = {
                "shape": full_shape(value),
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
