"""Names that can be imported and used in annotations, and that say at the call why they are not there.

Programs import much that only some of their users call: a class for a cluster, an exporter. Each of these
names is a class or a function of its own; a class is no type of anything, so that ``isinstance`` is False.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import rare_names
from .reasons import (
    BUILT,
    CAPTURED,
    COLLECTIVES,
    COMPILED,
    EXPORTED,
    MASKED,
    NESTED,
    PENDING,
    PIPES,
    QUANTIZED,
    SCRIPTED,
)  # fmt: skip

_SHARDING = (
    "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel "
    "LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision OptimStateDictConfig "
    "ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictSettings "
    "CPUOffloadPolicy FSDPModule fully_shard MixedPrecisionPolicy OffloadPolicy UnshardHandle "
    "register_fsdp_forward_method share_comm_ctx"
)
_COLLECTIVES = (
    "BackendConfig shrink_group ProcessGroupGloo ProcessGroupNCCL Reducer AllreduceOptions "
    "_object_to_tensor _tensor_to_object"
)
_QUANTIZERS = (
    "FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver MovingAverageMinMaxObserver "
    "MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerChannelMinMaxObserver "
    "PlaceholderObserver QConfig QConfigMapping convert default_dynamic_qconfig default_fake_quant "
    "default_float_qparams_observer default_observer default_per_channel_weight_observer "
    "default_qat_qconfig default_qconfig default_weight_fake_quant default_weight_observer "
    "disable_fake_quant disable_observer enable_fake_quant enable_observer float16_dynamic_qconfig "
    "float_qparams_weight_only_qconfig fuse_modules fuse_modules_qat get_default_qat_qconfig "
    "get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_mapping "
    "per_channel_dynamic_qconfig prepare prepare_qat propagate_qconfig_ quantize quantize_dynamic "
    "quantize_qat swap_module"
)
_QUANTIZED_LAYERS = (
    "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d DeQuantize ELU "
    "Embedding EmbeddingBag GroupNorm Hardswish LayerNorm LeakyReLU Linear LSTM PReLU Quantize ReLU6 "
    "Sigmoid Softmax QFunctional"
)
_FUSED_LAYERS = (
    "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d "
    "LinearReLU BNReLU2d BNReLU3d LinearBn1d"
)
_PIPES = (
    "Batcher Collator Concater Demultiplexer FileLister FileOpener Filter Forker Grouper IterableWrapper "
    "Mapper Multiplexer SequenceWrapper ShardingFilter Shuffler StreamReader UnBatcher Zipper"
)
_SCHEDULES = (
    "Pipe PipelineStage ScheduleGPipe Schedule1F1B ScheduleInterleaved1F1B ScheduleLoopedBFS "
    "build_stage pipe_split pipeline"
)
_HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"

#: For each module, why its names are refused, and which they are.
_FAMILIES: dict[str, tuple[str, str]] = {
    # --- several processes ---
    "torch.distributed": (COLLECTIVES, _COLLECTIVES),
    "torch.distributed.distributed_c10d": (COLLECTIVES, _COLLECTIVES),
    "torch.distributed.device_mesh": (COLLECTIVES, "_mesh_resources"),
    "torch.distributed.utils": (COLLECTIVES, "_sync_module_states _verify_param_shape_across_processes"),
    "torch.distributed.fsdp": (COLLECTIVES, _SHARDING),
    "torch.distributed.fsdp.api": (COLLECTIVES, _SHARDING),
    "torch.distributed.fsdp.fully_sharded_data_parallel": (COLLECTIVES, _SHARDING),
    "torch.distributed._composable.fsdp": (COLLECTIVES, _SHARDING),
    "torch.distributed._composable.replicate": (COLLECTIVES, "replicate"),
    "torch.distributed.fsdp.sharded_grad_scaler": (COLLECTIVES, "ShardedGradScaler"),
    "torch.distributed.fsdp.wrap": (
        COLLECTIVES,
        (
            "CustomPolicy ModuleWrapPolicy _or_policy _recursive_wrap always_wrap_policy enable_wrap "
            "lambda_auto_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap"
        ),
    ),
    "torch.distributed.fsdp._runtime_utils": (COLLECTIVES, "_lazy_init"),
    "torch.distributed.tensor": (
        COLLECTIVES,
        "DTensor Partial Placement Replicate Shard distribute_module distribute_tensor",
    ),
    "torch.distributed._tensor": (COLLECTIVES, "distribute_module"),
    "torch.distributed._tensor.experimental": (COLLECTIVES, "implicit_replication"),
    "torch.distributed.tensor._utils": (COLLECTIVES, "compute_local_shape_and_global_offset"),
    "torch.distributed.tensor.experimental": (
        COLLECTIVES,
        "context_parallel implicit_replication local_map register_sharding",
    ),
    "torch.distributed.tensor.experimental._attention": (COLLECTIVES, "set_rotate_method"),
    "torch.distributed.tensor.placement_types": (COLLECTIVES, "_StridedShard"),
    "torch.distributed.tensor.parallel": (
        COLLECTIVES,
        (
            "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput "
            "RowwiseParallel SequenceParallel parallelize_module loss_parallel"
        ),
    ),
    "torch.distributed.checkpoint": (
        COLLECTIVES,
        (
            "CheckpointException FileSystemReader FileSystemWriter HuggingFaceStorageReader "
            "HuggingFaceStorageWriter DefaultLoadPlanner DefaultSavePlanner LoadPlan LoadPlanner Metadata "
            "SavePlan SavePlanner StorageReader StorageWriter load_state_dict "
            "save_state_dict load_sharded_optimizer_state_dict"
        ),
    ),
    "torch.distributed.checkpoint._consolidate_hf_safetensors": (
        COLLECTIVES,
        "consolidate_safetensors_files",
    ),
    "torch.distributed.checkpoint.default_planner": (
        COLLECTIVES,
        "DefaultLoadPlanner DefaultSavePlanner _EmptyStateDictLoadPlanner",
    ),
    "torch.distributed.checkpoint.filesystem": (COLLECTIVES, "FileSystemReader FileSystemWriter"),
    "torch.distributed.checkpoint.format_utils": (
        COLLECTIVES,
        "_EmptyStateDictLoadPlanner _load_state_dict dcp_to_torch_save torch_save_to_dcp",
    ),
    "torch.distributed.checkpoint.hf_storage": (
        COLLECTIVES,
        "HuggingFaceStorageReader HuggingFaceStorageWriter",
    ),
    "torch.distributed.checkpoint.optimizer": (COLLECTIVES, "load_sharded_optimizer_state_dict"),
    "torch.distributed.checkpoint.state_dict": (
        COLLECTIVES,
        (
            "StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict "
            "set_model_state_dict set_optimizer_state_dict set_state_dict"
        ),
    ),
    "torch.distributed.checkpoint.state_dict_loader": (COLLECTIVES, "_load_state_dict load"),
    "torch.distributed.checkpoint.stateful": (COLLECTIVES, "Stateful"),
    "torch.distributed.algorithms": (COLLECTIVES, "Join Joinable JoinHook"),
    "torch.distributed.algorithms.join": (COLLECTIVES, "Join Joinable JoinHook"),
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": (
        COLLECTIVES,
        (
            "CheckpointWrapper OffloadWrapper apply_activation_checkpointing checkpoint_wrapper "
            "offload_wrapper"
        ),
    ),
    "torch.distributed.algorithms.model_averaging.averagers": (
        COLLECTIVES,
        "ModelAverager PeriodicModelAverager",
    ),
    f"{_HOOKS}.default_hooks": (
        COLLECTIVES,
        "allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper",
    ),
    f"{_HOOKS}.post_localSGD_hook": (COLLECTIVES, "PostLocalSGDState post_localSGD_hook"),
    f"{_HOOKS}.powerSGD_hook": (COLLECTIVES, "PowerSGDState batched_powerSGD_hook powerSGD_hook"),
    "torch.distributed.optim": (
        COLLECTIVES,
        "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
    ),
    "torch.distributed.nn": (
        COLLECTIVES,
        "RemoteModule all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter",
    ),
    "torch.distributed.nn.functional": (
        COLLECTIVES,
        "all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter",
    ),
    "torch.distributed._functional_collectives": (
        COLLECTIVES,
        (
            "AsyncCollectiveTensor all_gather_tensor all_gather_tensor_autograd all_reduce all_to_all_single "
            "all_to_all_single_autograd broadcast permute_tensor reduce_scatter_tensor "
            "reduce_scatter_tensor_autograd wait_tensor"
        ),
    ),
    "torch.distributed._shard.sharded_tensor": (COLLECTIVES, "Shard ShardedTensor"),
    "torch.distributed.pipelining": (COLLECTIVES, _SCHEDULES),
    "torch._C._distributed_c10d": (COLLECTIVES, "ProcessGroup Reducer Store"),
    "torch.distributed.rpc": (
        COLLECTIVES,
        "RRef TensorPipeRpcBackendOptions get_worker_info init_rpc remote rpc_async rpc_sync shutdown",
    ),
    "torch.distributed.rpc.api": (COLLECTIVES, "_all_gather _require_initialized"),
    "torch.distributed.elastic.multiprocessing": (COLLECTIVES, "DefaultLogsSpecs Std start_processes"),
    "torch.distributed.elastic.multiprocessing.errors": (
        COLLECTIVES,
        "ChildFailedError ProcessFailure record",
    ),
    "torch.distributed.launcher": (COLLECTIVES, "LaunchConfig elastic_launch launch_agent"),
    "torch.distributed.launcher.api": (COLLECTIVES, "LaunchConfig elastic_launch launch_agent"),
    "torch.distributed.run": (COLLECTIVES, "config_from_args"),
    "torch.nn.parallel": (COLLECTIVES, "DistributedDataParallel gather parallel_apply replicate scatter"),
    "torch.nn.parallel.distributed": (COLLECTIVES, "DistributedDataParallel"),
    "torch.nn.parallel.scatter_gather": (COLLECTIVES, "gather scatter scatter_kwargs"),
    "torch.nn.parallel.parallel_apply": (COLLECTIVES, "parallel_apply"),
    "torch.nn.parallel.replicate": (COLLECTIVES, "replicate"),
    "torch.numa.binding": (COLLECTIVES, "NumaOptions"),
    # --- devices ---
    **{
        f"torch.{kind}.{file}": (CAPTURED, wanted)
        for kind in ("cuda", "xpu")
        for file, wanted in (
            ("graphs", "CUDAGraph graph graph_pool_handle make_graphed_callables"),
            ("nvtx", "mark range range_end range_pop range_push range_start"),
            ("profiler", "init profile start stop"),
        )
    },
    "torch.autograd.profiler": (CAPTURED, "emit_itt emit_nvtx load_nvprof"),
    "torch.autograd.profiler_legacy": (CAPTURED, "profile"),
    # --- numbers of few bits ---
    "torch": (
        QUANTIZED,
        (
            "quantize_per_tensor quantize_per_channel _make_per_tensor_quantized_tensor _grouped_mm "
            "_scaled_mm PyTorchFileReader"
        ),
    ),
    "torch.ao.quantization": (QUANTIZED, _QUANTIZERS),
    "torch.ao.quantization.quantize_fx": (QUANTIZED, "convert_fx fuse_fx prepare_fx prepare_qat_fx"),
    "torch.quantization": (QUANTIZED, _QUANTIZERS),
    "torch.quantization.quantize_fx": (QUANTIZED, "convert_fx fuse_fx prepare_fx prepare_qat_fx"),
    **dict.fromkeys(
        ("torch.ao.nn.quantized", "torch.nn.quantized", "torch.ao.nn.quantized.dynamic",
         "torch.nn.quantized.dynamic", "torch.ao.nn.qat", "torch.nn.qat"),
        (QUANTIZED, _QUANTIZED_LAYERS),
    ),
    **dict.fromkeys(
        ("torch.ao.nn.intrinsic", "torch.nn.intrinsic", "torch.ao.nn.intrinsic.qat",
         "torch.nn.intrinsic.qat", "torch.ao.nn.intrinsic.quantized", "torch.nn.intrinsic.quantized"),
        (QUANTIZED, _FUSED_LAYERS),
    ),
    "torch.nn.functional": (QUANTIZED, "ScalingType SwizzleType scaled_grouped_mm scaled_mm"),
    # --- graphs of programs, and what is made of them ---
    "torch.export": (
        EXPORTED,
        (
            "ExportGraphSignature FlatArgsAdapter ModuleCallEntry ShapesCollection draft_export "
            "export_for_training unflatten"
        ),
    ),
    "torch.export._trace": (EXPORTED, "_export"),
    "torch.export.decomp_utils": (EXPORTED, "CustomDecompTable"),
    "torch.onnx": (
        EXPORTED,
        (
            "ExportOptions dynamo_export export_to_pretty_string select_model_mode_for_export"
        ),
    ),
    "torch.onnx.operators": (EXPORTED, "reshape_from_tensor_shape shape_as_tensor"),
    "torch.onnx.symbolic_helper": (EXPORTED, "_get_tensor_sizes _unimplemented cast_pytorch_to_onnx"),
    **{
        f"torch.onnx.symbolic_opset{number}": (
            EXPORTED,
            "dropout masked_fill select softmax squeeze unsqueeze",
        )
        for number in range(9, 17)
    },
    "torch._export": (EXPORTED, "capture_pre_autograd_graph"),
    "torch._inductor": (COMPILED, "aoti_compile_and_package aoti_load_package compile"),
    "torch._dynamo": (COMPILED, "export optimize run"),
    "torch.compiler": (COMPILED, "load_cache_artifacts load_compiled_function save_cache_artifacts"),
    "torch._higher_order_ops": (COMPILED, "associative_scan cond scan while_loop"),
    "torch._higher_order_ops.associative_scan": (COMPILED, "associative_scan"),
    "torch._subclasses": (COMPILED, "FakeTensor FakeTensorMode"),
    "torch._subclasses.fake_tensor": (COMPILED, "FakeTensor FakeTensorMode"),
    "torch._inductor.cpu_vec_isa": (COMPILED, "pick_vec_isa"),
    "torch.jit": (SCRIPTED, "CompilationUnit"),
    "torch._custom_ops": (COMPILED, "custom_op get_ctx impl impl_abstract"),
    "torch.package": (SCRIPTED, "PackageExporter PackageImporter"),
    "torch.utils.mobile_optimizer": (SCRIPTED, "optimize_for_mobile"),
    "torch.utils.cpp_extension": (
        BUILT,
        (
            "BuildExtension CUDAExtension CppExtension include_paths library_paths load load_inline "
            "verify_ninja_availability"
        ),
    ),
    "torch.nested": (
        NESTED,
        "as_nested_tensor nested_tensor nested_tensor_from_jagged narrow to_padded_tensor",
    ),
    "torch.utils.data.datapipes.iter": (PIPES, _PIPES),
    "torch.utils.data.datapipes.map": (PIPES, _PIPES),
    "torch.utils.data.datapipes.iter.combinatorics": (
        PIPES,
        "SamplerIterDataPipe ShufflerIterDataPipe",
    ),
    "torch.utils.data.datapipes.datapipe": (PIPES, "IterDataPipe MapDataPipe"),
    "torch.utils.data": (PIPES, "DFIterDataPipe DataChunk IterDataPipe MapDataPipe"),
    "torch.fx._pytree": (PENDING, "register_pytree_flatten_spec tree_flatten_spec"),
    "torch.fx.passes.infra.pass_base": (PENDING, "PassResult"),
    "torch.masked": (MASKED, "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor"),
    "torch._utils": (PENDING, "_rebuild_parameter _rebuild_tensor_v2"),
    "torch._tensor": (PENDING, "_rebuild_from_type_v2"),
    "torch.utils.data.graph": (PIPES, "traverse_dps"),
    "torch.utils.data.graph_settings": (PIPES, "apply_shuffle_settings apply_sharding"),
}  # fmt: skip


def _merged() -> dict[str, dict[str, str]]:
    merged: dict[str, dict[str, str]] = {}
    rows = [(module, why, names) for module, (why, names) in _FAMILIES.items()]
    for module, why, listed in (*rows, *rare_names.ROWS):
        merged.setdefault(module, {}).update(dict.fromkeys(listed.split(), why))
    return merged


#: For each module, its names that are refused, and why.
REFUSALS = _merged()


def names(module: str) -> list[str]:
    """Return the names of a module that are refused at the call."""
    return list(REFUSALS.get(module, ()))


def stand_in(module: str, name: str, default: Any) -> Any:
    """Return a class or function that refuses to be called, or `default` where none is listed."""
    reasons = REFUSALS.get(module, {})
    if name not in reasons:
        return default
    why = f"{module}.{name}: {reasons[name]}"
    if name.lstrip("_")[:1].islower():
        return _function(module, name, why)
    base = Exception if name.endswith(("Error", "Exception")) else object

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(why)

    members = {"__module__": module, "__doc__": f"Not there: {why}.", "__new__": refuse}
    return type(name, (base,), members)


def _function(module: str, name: str, why: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(why)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__, refuse.__doc__ = module, f"Not there: {why}."
    return refuse
