"""Processes in the order of a grid, with a group along each of its dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import arange
from tensorplug.core.tensor.creation import tensor

from . import distributed_c10d as c10d

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Processes in the order of a grid.

    Parameters
    ----------
    device_type : str
        The device of the tensors that they exchange.
    mesh : Tensor or nested list of int
        The ranks; every process of the world makes the same mesh.
    mesh_dim_names : tuple of str, optional
        A name for each dimension.

    Raises
    ------
    RuntimeError
        If there are as many names as dimensions neither, or names twice.

    Examples
    --------
    >>> mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))  # doctest: +SKIP
    >>> mesh["tp"].get_group()  # of this process's row # doctest: +SKIP
    """

    def __init__(
        self,
        device_type: str,
        mesh: Tensor | Sequence[Any],
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        _groups: list[Any] | None = None,
    ) -> None:
        self.device_type = device_type
        self.mesh = mesh if isinstance(mesh, Tensor) else tensor(mesh)
        if mesh_dim_names is not None:
            if len(mesh_dim_names) != self.mesh.ndim:
                raise RuntimeError(
                    "mesh_dim_names must have as many names as the mesh has dimensions: "
                    f"{mesh_dim_names} for {self.mesh.ndim}"
                )
            if len(set(mesh_dim_names)) != len(mesh_dim_names):
                raise RuntimeError(f"Each mesh_dim_name must be unique, got {mesh_dim_names}")
            mesh_dim_names = tuple(mesh_dim_names)
        self.mesh_dim_names = mesh_dim_names
        self._groups = self._make_groups() if _groups is None else _groups

    def _make_groups(self) -> list[Any]:
        """Return for each dimension the group along it that this process is in, if it is in the mesh."""
        world = list(range(c10d.get_world_size()))
        if self.ndim == 1 and self.mesh.tolist() == world:
            return [c10d._get_default_group()]
        groups: list[Any] = [None] * self.ndim
        sizes = self.mesh.shape
        for dim in range(self.ndim):
            for line in self.mesh.movedim(dim, -1).reshape(-1, sizes[dim]).tolist():
                group = c10d.new_group(line)
                if c10d.get_rank() in line:
                    groups[dim] = group
        return groups

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Return how many processes there are, along a dimension if it is given."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    def _number(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions: the optional kwarg `mesh_dim` needs "
                    "to be specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(
                    f"Invalid mesh_dim_name {mesh_dim!r}, there are {self.mesh_dim_names}"
                )
            assert self.mesh_dim_names is not None
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """Return the group of the processes along a dimension that this one is among."""
        return self._groups[self._number(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """Return the groups along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """Return this process's rank in the world."""
        return c10d.get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return where along a dimension this process is."""
        return c10d.get_rank(self.get_group(mesh_dim))

    def get_coordinate(self) -> list[int] | None:
        """Return where in the mesh this process is; None if it is not."""
        found = (self.mesh == c10d.get_rank()).nonzero()
        return found[0].tolist() if len(found) else None

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the part of the mesh along dimensions, by name, that this process is in."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        numbers = [self._number(name) for name in names]
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError("a process that is not in a mesh has no part of it")
        index = tuple(
            slice(None) if dim in numbers else coordinate[dim] for dim in range(self.ndim)
        )
        return DeviceMesh(
            self.device_type,
            self.mesh[index],
            mesh_dim_names=names,
            _groups=[self._groups[number] for number in numbers],
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and self.mesh_dim_names == other.mesh_dim_names
            and self.mesh.tolist() == other.mesh.tolist()
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, str(self.mesh.tolist())))

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
) -> DeviceMesh:
    """Return all processes in the order of a grid; every process calls it. Joins the world, if need be.

    Parameters
    ----------
    device_type : str
        The device of the tensors that they exchange, without an index.
    mesh_shape : tuple of int
        How many processes there are along each dimension.
    mesh_dim_names : tuple of str, optional
        A name for each dimension.

    Raises
    ------
    RuntimeError
        If names and dimensions, or processes and places, are not equally many.

    Examples
    --------
    >>> mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))  # doctest: +SKIP
    >>> mesh["dp"].size()  # doctest: +SKIP
    2
    """
    if mesh_dim_names is not None and len(mesh_shape) != len(mesh_dim_names):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
            f"{len(mesh_dim_names)} and len(mesh_shape): {len(mesh_shape)}."
        )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}; give the type alone."
        )
    if not c10d.is_initialized():
        c10d.init_process_group()
    places = math.prod(mesh_shape)
    if places > c10d.get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {c10d.get_world_size()}, but found "
            f"{places} ranks!"
        )
    return DeviceMesh(device_type, arange(places).view(mesh_shape), mesh_dim_names=mesh_dim_names)
