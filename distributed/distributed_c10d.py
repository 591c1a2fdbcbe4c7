"""Process groups and collectives under the path that torch has them at."""

from .backends import (
    Backend as Backend,
    get_default_backend_for_device as get_default_backend_for_device,
    is_available as is_available,
    is_backend_available as is_backend_available,
    is_gloo_available as is_gloo_available,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_ucc_available as is_ucc_available,
    is_xccl_available as is_xccl_available,
)
from .coalescing import (
    _coalescing_manager as _coalescing_manager,
    _CoalescingManager as _CoalescingManager,
    all_gather_coalesced as all_gather_coalesced,
    all_reduce_coalesced as all_reduce_coalesced,
)
from .collectives import (
    all_reduce as all_reduce,
    barrier as barrier,
    broadcast as broadcast,
    monitored_barrier as monitored_barrier,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
)
from .debug import (
    DebugLevel as DebugLevel,
    get_debug_level as get_debug_level,
    set_debug_level as set_debug_level,
    set_debug_level_from_env as set_debug_level_from_env,
)
from .errors import (
    DistBackendError as DistBackendError,
    DistError as DistError,
    DistNetworkError as DistNetworkError,
    DistQueueEmptyError as DistQueueEmptyError,
    DistStoreError as DistStoreError,
)
from .file_store import FileStore as FileStore
from .gathering import (
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    gather as gather,
    scatter as scatter,
)
from .groups import (
    GroupMember as GroupMember,
    ProcessGroup as ProcessGroup,
    _get_default_group as _get_default_group,
    default_pg_timeout as default_pg_timeout,
    get_backend as get_backend,
    get_backend_config as get_backend_config,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_node_local_rank as get_node_local_rank,
    get_pg_count as get_pg_count,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    is_initialized as is_initialized,
    is_torchelastic_launched as is_torchelastic_launched,
)
from .objects import (
    all_gather_object as all_gather_object,
    broadcast_object_list as broadcast_object_list,
    gather_object as gather_object,
    recv_object_list as recv_object_list,
    scatter_object_list as scatter_object_list,
    send_object_list as send_object_list,
)
from .point_to_point import (
    P2POp as P2POp,
    batch_isend_irecv as batch_isend_irecv,
    irecv as irecv,
    isend as isend,
    recv as recv,
    send as send,
)
from .reduce_op import (
    ReduceOp as ReduceOp,
    reduce_op as reduce_op,
    supports_complex as supports_complex,
)
from .rendezvous import (
    register_rendezvous_handler as register_rendezvous_handler,
    rendezvous as rendezvous,
)
from .stores import HashStore as HashStore, PrefixStore as PrefixStore, Store as Store
from .subgroups import (
    new_group as new_group,
    new_subgroups as new_subgroups,
    new_subgroups_by_enumeration as new_subgroups_by_enumeration,
    split_group as split_group,
)
from .tcp_store import TCPStore as TCPStore
from .work import (
    Work as Work,
)
from .world import (
    destroy_process_group as destroy_process_group,
    init_process_group as init_process_group,
)

all_gather_single = _all_gather_base = all_gather_into_tensor
reduce_scatter_single = _reduce_scatter_base = reduce_scatter_tensor
