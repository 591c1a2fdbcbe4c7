"""Each public name of torch.distributed is here, or stands below with the reason why it is not."""

import importlib
import importlib.util
import inspect
import warnings

import pytest

torch = pytest.importorskip("torch")

CPP = "options, loggers and classes of torch's C++: what stands behind its functions"
RUN = "torchrun's inner parts: the launcher is one program here"
PLANS = "planners: what is not to be written is left out of the state"
FSDP1 = "torch's first FSDP; fully_shard is the second"
DTENSOR = "ops of a DTensor are those of the process's part"
FILES = "files of checkpoints are safetensors and JSON"
PIPE = "no pipelines: the schedules of stages over processes are a project of their own"
RPC = "no remote calls: they need a service in each process that runs what others send"
DEBUG = "torch's own debugging"
AVERAGING = "no model averaging: it trades the equal weights of all processes away"

REASONS = {
    "": {
        CPP: (
            "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions "
            "BroadcastOptions BuiltinCommHookType GatherOptions GroupName Logger ProcessGroupGloo RankType "
            "ReduceOptions ReduceScatterOptions Reducer ScatterOptions remote_device"
        ),
        DEBUG: "breakpoint record_comm",
        "only NCCL can": "shrink_group",
    },
    "distributed_c10d": {
        CPP: (
            "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions "
            "BroadcastOptions GatherOptions GroupName ProcessGroupGloo ReduceOptions ReduceScatterOptions "
            "ScatterOptions"
        ),
        DEBUG: "record_comm",
        "only NCCL can": "shrink_group",
    },
    "device_mesh": {},
    "tensor": {DTENSOR: "distribute_module empty full ones rand randn zeros"},
    "tensor.placement_types": {},
    "tensor.parallel": {},
    "checkpoint": {
        PLANS: (
            "DefaultLoadPlanner DefaultSavePlanner LoadPlan LoadPlanner ReadItem SavePlan SavePlanner "
            "WriteItem"
        ),
        FILES: (
            "BytesStorageMetadata ChunkStorageMetadata HuggingFaceStorageReader HuggingFaceStorageWriter "
            "Metadata QuantizedHuggingFaceStorageReader StorageReader StorageWriter TensorStorageMetadata"
        ),
        "CheckpointError is it": "CheckpointException",
        "torch gave them up for load and save": (
            "load_sharded_optimizer_state_dict load_state_dict save_state_dict"
        ),
    },
    "checkpoint.stateful": {"a type variable": "StatefulT"},
    "checkpoint.state_dict": {
        "types of its own annotations": (
            "DictValueType FQNS_T ListDictValueType OptimizerStateType PrimitiveType ValueType"
        )
    },
    "fsdp": {
        FSDP1: (
            "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig "
            "FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision "
            "OptimStateDictConfig OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig "
            "ShardingStrategy StateDictConfig StateDictSettings StateDictType"
        ),
        "one stream of the device": "share_comm_ctx",
        "a mesh of two dimensions says it": "DataParallelMeshDims",
    },
    "optim": {
        RPC: "DistributedOptimizer",
        AVERAGING: "PostLocalSGDOptimizer",
        "optimizers compile as they are": "as_functional_optim",
    },
    "algorithms.join": {},
    "algorithms.ddp_comm_hooks": {
        "register_comm_hook takes the hooks themselves": "DDPCommHookType register_ddp_comm_hook"
    },
    "algorithms.ddp_comm_hooks.default_hooks": {},
    "nn": {RPC: "RemoteModule"},
    "nn.functional": {},
    "run": {
        RUN: (
            "DefaultLogsSpecs LaunchConfig LogsSpecs Std config_from_args determine_local_world_size "
            "elastic_launch get_rdzv_endpoint get_use_env macros parse_min_max_nnodes record run_script_path "
            "check_env env get_logger logger"
        )
    },
}
MISSING = {
    "rpc": RPC,
    "autograd": RPC,
    "pipelining": PIPE,
    "elastic": RUN,
    "launcher": RUN,
    "launch": RUN,
    "flight_recorder": DEBUG,
    "algorithms.model_averaging": AVERAGING,
}


def public(module):
    """Return a module's own public names: not those it imports from the standard library."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and not inspect.ismodule(value)
            and str(getattr(value, "__module__", "torch")).startswith("torch")
            and not hasattr(importlib.import_module("typing"), name)
        ]
    return {name for name in names if not inspect.ismodule(getattr(module, name, None))}


@pytest.mark.parametrize("path", REASONS)
def test_each_name_is_here_or_has_its_reason(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = importlib.import_module(f"torch.distributed.{path}".rstrip("."))
        names = public(theirs)
    ours = importlib.import_module(f"tensorplug.distributed.{path}".rstrip("."))
    reasons = {name for names in REASONS[path].values() for name in names.split()}
    absent = {name for name in names if not hasattr(ours, name)}
    if not hasattr(theirs, "__all__"):  # what its own modules import from others of torch
        absent -= set(vars(torch)) | {"Function", "REMAINDER", "ReduceOp", "group"}
    assert absent - reasons == set()
    assert {
        name for name in reasons if hasattr(ours, name)
    } == set()  # reasons that are out of date


@pytest.mark.parametrize("path", MISSING)
def test_modules_that_are_not_here(path):
    assert importlib.util.find_spec(f"torch.distributed.{path}") is not None
    parent = importlib.util.find_spec("tensorplug.distributed")
    assert parent is not None
    with pytest.raises(ImportError):
        importlib.import_module(f"tensorplug.distributed.{path}")
