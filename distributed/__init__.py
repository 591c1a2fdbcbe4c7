"""Programs of several processes: process groups, collectives and messages, under torch's names.

Processes exchange tensors by the backend that a plugin brings: ``pip install 'tensorplug[mpi]'`` has
one on MPI. docs/distributed.md tells how programs are started, and how they scale.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .backends import (
    Backend,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from .collectives import (
    all_reduce,
    barrier,
    broadcast,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)
from .debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from .errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistQueueEmptyError,
    DistStoreError,
)
from .gathering import (
    all_gather,
    all_gather_into_tensor,
    all_to_all,
    all_to_all_single,
    gather,
    scatter,
)
from .groups import (
    GroupMember,
    ProcessGroup,
    _get_default_group as _get_default_group,
    default_pg_timeout,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_initialized,
    is_torchelastic_launched,
)
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .reduce_op import ReduceOp, make_premul_sum, reduce_op
from .subgroups import (
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from .work import Work
from .world import (
    destroy_process_group,
    init_process_group,
)

_make_nccl_premul_sum = make_premul_sum  # torch's name

if TYPE_CHECKING:
    from . import (
        algorithms as algorithms,
        checkpoint as checkpoint,
        fsdp as fsdp,
        optim as optim,
        tensor as tensor,
    )
    from .device_mesh import DeviceMesh, init_device_mesh
    from .reducer import GradBucket

#: What is imported on first use: modules, and names with the module that has them.
_MODULES = (
    "algorithms", "checkpoint", "device_mesh", "distributed_c10d", "fsdp", "optim", "tensor",
)  # fmt: skip
_LAZY = {"DeviceMesh": "device_mesh", "GradBucket": "reducer", "init_device_mesh": "device_mesh"}

__all__ = [
    "Backend",
    "DebugLevel",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistQueueEmptyError",
    "DistStoreError",
    "GradBucket",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_LAZY})
