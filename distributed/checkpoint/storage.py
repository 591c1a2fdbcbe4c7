"""A checkpoint in a folder: two files per process, and one that says what is where.

``.metadata`` is replaced at the very end, in one step, and names the files that belong to it: whatever breaks
off before, the folder holds the checkpoint that it held.
"""

from __future__ import annotations

import importlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorplug.core import Tensor

METADATA = ".metadata"
FORMAT = 1


class CheckpointError(RuntimeError):
    """A checkpoint could not be written by all processes, or is not there, or damaged."""


class FileSystemWriter:
    """Writes a checkpoint to a folder, in place of the one there.

    Parameters
    ----------
    path : path
        The folder, on a file system that all processes share.

    Examples
    --------
    >>> writer = FileSystemWriter("checkpoint")
    >>> tp.distributed.checkpoint.save(state, storage_writer=writer)  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], **_: Any) -> None:
        self.path = Path(path)

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Write a process's tensors to a file."""
        self.path.mkdir(parents=True, exist_ok=True)
        _safetensors().save_file(dict(tensors), self.path / name)

    def write_objects(self, name: str, objects: dict[str, Any]) -> None:
        """Write values that are no tensors to a file."""
        self.path.mkdir(parents=True, exist_ok=True)
        importlib.import_module("tensorplug.serialization").save(objects, self.path / name)

    def finish(self, metadata: dict[str, Any]) -> None:
        """Make the new files the checkpoint, and remove those of the one before."""
        new = self.path / f"{METADATA}.{uuid.uuid4().hex}"
        with new.open("w") as file:
            json.dump({"format": FORMAT, **metadata}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / METADATA)
        kept = {METADATA, *metadata["files"]}
        for old in self.path.iterdir():
            ours = old.suffix in (".distcp", ".objects") or old.name.startswith(METADATA)
            if ours and old.name not in kept:
                old.unlink(missing_ok=True)


class FileSystemReader:
    """Reads a checkpoint from a folder.

    Parameters
    ----------
    path : path
        The folder.

    Examples
    --------
    >>> reader = FileSystemReader("checkpoint")
    >>> tp.distributed.checkpoint.load(state, storage_reader=reader)  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], **_: Any) -> None:
        self.path = Path(path)
        self._files: dict[str, Any] = {}

    def read_metadata(self) -> dict[str, Any]:
        """Return what the checkpoint holds: under ``"tensors"`` the parts of each, with their places.

        Raises
        ------
        CheckpointError
            If there is none, or of a later format.
        """
        try:
            metadata: dict[str, Any] = json.loads((self.path / METADATA).read_text())
        except FileNotFoundError:
            raise CheckpointError(f"{str(self.path)!r} holds no checkpoint") from None
        except ValueError as error:
            raise CheckpointError(f"{self.path / METADATA} is damaged: {error}") from error
        if metadata.get("format") != FORMAT:
            raise CheckpointError(
                f"{str(self.path)!r} holds a checkpoint of format {metadata.get('format')!r}, not {FORMAT}"
            )
        return metadata

    def read_part(self, file: str, name: str, index: tuple[slice, ...]) -> Tensor:
        """Return some rows of a tensor in a file; the rest is not read."""
        if file not in self._files:
            self._files[file] = _safetensors().safe_open(self.path / file)
        piece: Tensor = self._files[file].get_slice(name)[index]
        return piece

    def read_objects(self, name: str) -> dict[str, Any]:
        """Return the values that are no tensors."""
        found: dict[str, Any] = importlib.import_module("tensorplug.serialization").load(
            self.path / name
        )
        return found

    def close(self) -> None:
        """Let go of the files."""
        self._files.clear()


def _safetensors() -> Any:
    return importlib.import_module("tensorplug.safetensors")
