"""Programs of several processes: process groups, collectives and messages, under torch's names.

Processes exchange tensors by the backend that a plugin brings: ``pip install 'tensorplug[mpi]'`` has
one on MPI. docs/distributed.md tells how programs are started, and how they scale.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .backends import (
    Backend,
    get_default_backend_for_device,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from .coalescing import (
    _coalescing_manager as _coalescing_manager,
    _CoalescingManager as _CoalescingManager,
    all_gather_coalesced,
    all_reduce_coalesced,
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
from .file_store import FileStore
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
from .reduce_op import ReduceOp, make_premul_sum, reduce_op, supports_complex
from .rendezvous import register_rendezvous_handler, rendezvous
from .stores import HashStore, PrefixStore, Store
from .subgroups import (
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from .tcp_store import TCPStore
from .work import Work
from .world import (
    destroy_process_group,
    init_process_group,
)

# torch's other names
_make_nccl_premul_sum = make_premul_sum
all_gather_single = _all_gather_base = all_gather_into_tensor
reduce_scatter_single = _reduce_scatter_base = reduce_scatter_tensor
QueueEmptyError = DistQueueEmptyError

if TYPE_CHECKING:
    from . import (
        algorithms as algorithms,
        checkpoint as checkpoint,
        fsdp as fsdp,
        nn as nn,
        optim as optim,
        tensor as tensor,
    )
    from .device_mesh import DeviceMesh, init_device_mesh
    from .reducer import GradBucket

#: What is imported on first use: modules, and names with the module that has them.
_MODULES = (
    "_functional_collectives", "algorithms", "checkpoint", "device_mesh", "distributed_c10d", "fsdp",
    "nn", "optim", "tensor",
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
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
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
    "get_default_backend_for_device",
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
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "split_group",
    "supports_complex",
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
