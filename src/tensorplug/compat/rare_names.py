"""Further names that torch lists as public and that refuse at the call: rows of module, reason and names."""

from __future__ import annotations

from .reasons import (
    CAPTURED,
    COLLECTIVES,
    COMPILED,
    EXPORTED,
    GONE,
    INSIDE,
    NESTED,
    PENDING,
    PIPES,
    PLUGIN,
    QUANTIZED,
    SCRIPTED,
    STEPS,
    SYMBOLIC,
    VENDOR,
)  # fmt: skip

#: What torch compiles of TorchScript, and shows at its top level.
_SCRIPTS = """
    AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats
    Block BoolType BufferDict CallStack Capsule ClassType Code CompilationUnit CompleteArgumentSpec
    ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext
    DeviceObjType DictType EnumType ErrorReport ExecutionPlan FileCheck FloatType FunctionSchema FutureType
    Gradient Graph GraphExecutorState IODescriptor InferredType IntType InterfaceType ListType
    LiteScriptModule LockingLogger LoggerBase ModuleDict Node NoneType NoopLogger NumberType OperatorInfo
    OptionalType ParameterDict PyObjectType PyTorchFileWriter RRefType ScriptClass ScriptClassFunction
    ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator
    ScriptMethod ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext
    StaticModule StreamObjType StringType SymBoolType SymIntType ThroughputBenchmark TracingState TupleType
    Type UnionType Use Value import_ir_module import_ir_module_from_buffer merge_type_from_type_comment
    parse_ir parse_schema parse_type_comment unify_type_list
"""
_OBSERVED = """
    AffineQuantizedObserverBase FixedQParamsFakeQuantize FixedQParamsObserver FusedMovingAvgObsFakeQuantize
    Granularity MappingType MatchAllNode ObserverOrFakeQuantize Pattern PerAxis PerBlock PerGroup PerRow
    PerTensor PerToken QConfigAny QConfigDynamic QuantType QuantWrapper RecordingObserver
    ReuseInputObserver TorchAODType UniformQuantizationObserverBase ZeroPointDomain add_quant_dequant
    convert_dynamic_jit convert_jit default_affine_fixed_qparams_fake_quant
    default_affine_fixed_qparams_observer default_debug_observer default_debug_qconfig
    default_dynamic_fake_quant default_dynamic_quant_observer default_embedding_fake_quant
    default_embedding_fake_quant_4bit default_eval_fn default_fixed_qparams_range_0to1_fake_quant
    default_fixed_qparams_range_0to1_observer default_fixed_qparams_range_neg1to1_fake_quant
    default_fixed_qparams_range_neg1to1_observer default_float_qparams_observer_4bit
    default_fused_act_fake_quant default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant
    default_histogram_fake_quant default_histogram_observer default_per_channel_qconfig
    default_per_channel_weight_fake_quant default_placeholder_observer default_reuse_input_observer
    default_symmetric_fixed_qparams_fake_quant default_symmetric_fixed_qparams_observer
    default_weight_only_qconfig float16_static_qconfig fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu
    fuse_convtranspose_bn fuse_linear_bn fused_per_channel_wt_fake_quant_range_neg_127_to_127
    fused_wt_fake_quant_range_neg_127_to_127 get_block_size get_combined_dict
    get_default_compare_output_module_list get_default_custom_config_dict
    get_default_dynamic_quant_module_mappings get_default_dynamic_sparse_quant_module_mappings
    get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings
    get_default_qat_qconfig_dict get_default_qconfig_dict get_default_qconfig_propagation_list
    get_default_static_quant_module_mappings get_default_static_quant_reference_module_mappings
    get_default_static_sparse_quant_module_mappings get_dynamic_quant_module_class
    get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings get_fuser_method
    get_fuser_method_new get_observer_state_dict get_quantized_operator get_static_quant_module_class
    load_observer_state_dict no_observer_set per_channel_weight_observer_range_neg_127_to_127
    prepare_dynamic_jit prepare_jit qconfig_equals quantize_dynamic_jit quantize_jit script_qconfig
    script_qconfig_dict weight_observer_range_neg_127_to_127
"""
_QUANTIZED = """
    choose_qparams_optimized dequantize empty_quantized fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
    fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
    fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr
    q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme
    quantize_per_tensor_dynamic quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm
    quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    quantized_rnn_relu_cell quantized_rnn_tanh_cell
"""
_KERNELS = """
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats cudnn_affine_grid_generator
    cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
    cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm miopen_convolution
    miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss
    miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution
    mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer
"""
_SPARSE_COPIES = """
    ccol_indices_copy col_indices_copy crow_indices_copy indices_copy row_indices_copy values_copy
"""
_EXPORT = """
    AdditionalInputs Constraint CustomDecompTable ExportBackwardSignature ModuleCallSignature
    UnflattenedModule
"""

_OPTIMIZERS = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd"
_BENCHMARKED = """
    CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor
    FuzzedTensor Fuzzer ParameterAlias
"""
_SEMI_SPARSE = """
    SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS
    as_sparse_gradcheck solve spsolve to_sparse_semi_structured
"""
_PIPED = """
    argument_validation guaranteed_datapipes_determinism non_deterministic runtime_validation
    runtime_validation_disabled
"""
_PRIVATE = "generate_methods_for_privateuse1_backend rename_privateuse1_backend"

_WORKERS = "ManagerWatchdog _IterableDatasetStopIteration _ResumeIteration"
_WRAPPERS = "_IterDataPipeSerializationWrapper _MapDataPipeSerializationWrapper"

ROWS: tuple[tuple[str, str, str], ...] = (
    ("torch", NESTED, "_nested_compute_contiguous_strides_offsets _nested_view_from_buffer jagged"),
    ("torch._higher_order_ops.associative_scan", PENDING, "associative_scan"),
    ("torch.jit", SCRIPTED, "_get_trace_graph"),
    ("torch.nn.utils._per_sample_grad", PENDING, "call_for_per_sample_grads"),
    ("torch.utils.data._utils.signal_handling", INSIDE, "_set_worker_signal_handlers"),
    ("torch.utils.data._utils.worker", INSIDE, _WORKERS),
    ("torch.utils.data.datapipes.datapipe", PIPES, _WRAPPERS),
    ("torch.utils.data.dataloader", INSIDE, "_InfiniteConstantSampler _sharding_worker_init_fn"),
    ("torch.utils.data.graph_settings", PIPES, "apply_random_seed"),
    ("torch._C", INSIDE, "ScriptObject _current_autograd_node _storage_Use_Count"),
    ("torch._C._distributed_rpc", COLLECTIVES, "PyRRef"),
    ("torch._decomp", EXPORTED, "core_aten_decompositions"),
    ("torch._functorch._aot_autograd.functional_utils", INSIDE, "from_fun to_fun"),
    ("torch._inductor.cpp_builder", COMPILED, "get_cpp_compiler"),
    ("torch._subclasses.fake_tensor", EXPORTED, "FakeTensorConverter"),
    ("torch._subclasses.meta_utils", EXPORTED, "MetaConverter"),
    ("torch.distributed.rpc", COLLECTIVES, "BackendType"),
    ("torch", SCRIPTED, _SCRIPTS),
    ("torch", QUANTIZED, _QUANTIZED),
    ("torch", VENDOR, _KERNELS),
    ("torch", INSIDE, _SPARSE_COPIES),
    ("torch", GONE, "eig lstsq matrix_rank solve symeig"),
    ("torch", SYMBOLIC, "sym_fresh_size"),
    ("torch.ao.quantization", QUANTIZED, _OBSERVED),
    ("torch.quantization", QUANTIZED, _OBSERVED),
    ("torch.accelerator", CAPTURED, "Graph"),
    ("torch.autograd", INSIDE, "NestedIOFunction SavedTensor enforce_grad_layout_policy"),
    ("torch.autograd.function", INSIDE, "BackwardCFunction NestedIOFunction custom_function_call"),
    ("torch.autograd.graph", PENDING, "region_activation_memory_budget"),
    ("torch.autograd.profiler", INSIDE, "EnforceUnique KinetoStepTracker MemRecordsAcc parse_nvprof_trace"),
    ("torch.backends.cuda", VENDOR, "SDPAParams cuBLASModule cuFFTPlanCache cuFFTPlanCacheManager"),
    ("torch.compiler", COMPILED, "set_enable_guard_collectives wrap_numpy"),
    ("torch.export", EXPORTED, _EXPORT),
    ("torch.func", PENDING, "rearrange"),
    ("torch.fx.operator_schemas", PENDING, "normalize_function normalize_module get_signature_for_torch_op"),
    ("torch.fx.passes.graph_drawer", PENDING, "FxGraphDrawer"),
    ("torch.fx.passes.operator_support", PENDING, "OperatorSupport OperatorSupportBase"),
    ("torch.fx.passes.splitter_base", PENDING, "_SplitterBase"),
    ("torch.fx.proxy", INSIDE, "MetaProxy"),
    ("torch.jit", SCRIPTED, "export_opnames jit_module_from_flatbuffer save_jit_module_to_flatbuffer"),
    ("torch.library", INSIDE, "get_kernel"),
    ("torch.monitor", PENDING, "Aggregation Event Stat TensorboardEventHandler log_event"),
    ("torch.mps", PLUGIN, "compile_shader load_metallib"),
    ("torch.nested", NESTED, "masked_select"),
    ("torch.nn.attention", VENDOR, "activate_flash_attention_impl register_flash_attention_impl"),
    ("torch.nn.quantizable", QUANTIZED, "LSTM LSTMCell MultiheadAttention"),
    ("torch.onnx", EXPORTED, "ExportableModule InputObserver JitScalarType"),
    ("torch.optim._functional", STEPS, _OPTIMIZERS),
    *((f"torch.optim.{name}", STEPS, name) for name in _OPTIMIZERS.split()),
    ("torch.overrides", INSIDE, "enable_reentrant_dispatch redispatch_function"),
    ("torch.package", SCRIPTED, "EmptyMatchError OrderedImporter PackagingError sys_importer"),
    ("torch.profiler", PENDING, "ExecutionTraceObserver KinetoStepTracker"),
    ("torch.serialization", PLUGIN, "register_package"),
    ("torch.sparse", PENDING, _SEMI_SPARSE),
    ("torch.utils", PLUGIN, _PRIVATE),
    ("torch.utils.backend_registration", PLUGIN, _PRIVATE),
    ("torch.utils.benchmark", PENDING, _BENCHMARKED),
    ("torch.utils.bundled_inputs", SCRIPTED, "InflatableArg augment_model_with_bundled_inputs bundle_inputs"),
    ("torch.utils.data", PIPES, _PIPED),
    ("torch.utils.throughput_benchmark", SCRIPTED, "ThroughputBenchmark"),
)  # fmt: skip
