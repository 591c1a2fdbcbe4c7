"""ATen's names of steps inside of ops: programs use them as keys of tables, and few call them."""

from __future__ import annotations

from typing import Any, NoReturn

_NAMES = """
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward _add_batch_dim _add_relu
    _add_relu_ _addmm_activation _aminmax _autocast_to_full_precision
    _autocast_to_reduced_precision _backward _batch_norm_no_update _cdist_backward _cdist_forward
    _cholesky_solve_helper _choose_qparams_per_tensor _coalesce _coalesced _coalesced_
    _compute_linear_combination _conj_physical _conv_depthwise2d _convert_indices_from_coo_to_csr
    _convert_indices_from_csr_to_coo _convolution _convolution_double_backward _convolution_mode
    _ctc_loss _ctc_loss_backward _cummax_helper _cummin_helper _dirichlet_grad
    _efficient_attention_backward _efficient_attention_forward _efficientzerotensor _embedding_bag
    _embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_forward_only
    _embedding_bag_per_sample_weights_backward _fft_c2c _fft_c2r _fft_r2c
    _fill_mem_eff_dropout_mask_ _flash_attention_backward _flash_attention_forward
    _flash_attention_forward_no_dropout_inplace _foreach_zero _grad_sum_to_size _grouped_mm
    _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _index_put_impl
    _index_put_impl_ _int_mm _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet
    _linalg_solve_ex _linalg_svd _logcumsumexp _lu_with_info
    _masked_scale _masked_softmax _masked_softmax_backward _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training
    _native_multi_head_attention _neg_view _pack_padded_sequence _pack_padded_sequence_backward
    _pack_sequence _pad_circular _pad_packed_sequence _pdist_backward _pdist_forward _prelu_kernel
    _prelu_kernel_backward _remove_batch_dim _reshape_from_tensor _resize_output _resize_output_
    _safe_softmax _sample_dirichlet _scaled_dot_product_attention_math
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _shape_as_tensor _slow_conv2d_backward _slow_conv2d_forward
    _sparse_addmm _sparse_coo_tensor_unsafe _sparse_csr_sum _sparse_log_softmax _sparse_mm
    _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward _sparse_softmax _sparse_sparse_matmul
    _sparse_sum _spdiags _spsolve _standard_gamma _standard_gamma_grad
    _thnn_differentiable_gru_cell_backward _thnn_differentiable_lstm_cell_backward _to_sparse
    _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr _transformer_encoder_layer_fwd
    _trilinear _unique _unique2 _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward
    _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward _upsample_lanczos2d_aa
    _upsample_lanczos2d_aa_backward _upsample_nearest_exact1d _upsample_nearest_exact1d_backward
    _upsample_nearest_exact2d _upsample_nearest_exact2d_backward _upsample_nearest_exact3d
    _upsample_nearest_exact3d_backward _weight_norm _weight_norm_differentiable_backward
    _weight_norm_interface _weight_norm_interface_backward adaptive_avg_pool3d_backward
    adaptive_max_pool2d_backward adaptive_max_pool3d_backward affine_grid_generator
    affine_grid_generator_backward avg_pool2d_backward avg_pool3d_backward batch_norm_backward
    binomial cauchy ccol_indices choose_qparams_optimized conv_depthwise3d conv_tbc_backward
    convolution_backward cross_entropy_loss cummaxmin_backward cumprod_backward diagonal_backward
    dist_backward embedding_backward embedding_renorm exponential feature_dropout_
    fractional_max_pool2d_backward fractional_max_pool3d_backward geometric glu_backward_jvp
    glu_jvp grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward
    huber_loss_backward index_select_backward infinitely_differentiable_gelu_backward
    linalg__powsum linear_backward log_normal log_sigmoid log_sigmoid_backward log_sigmoid_forward
    masked_scatter_backward masked_select_backward matmul_backward matrix_exp_backward
    max_pool2d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward
    mish_backward mse_loss_backward multi_margin_loss_backward multilabel_margin_loss_backward
    multilabel_margin_loss_forward native_group_norm native_group_norm_backward native_layer_norm
    native_layer_norm_backward native_norm nested_to_padded_tensor nll_loss2d nll_loss2d_backward
    nll_loss2d_forward nll_loss_forward nll_loss_nd nonzero_numpy reflection_pad1d
    reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward reflection_pad3d
    reflection_pad3d_backward replication_pad1d replication_pad1d_backward replication_pad2d
    replication_pad2d_backward replication_pad3d replication_pad3d_backward rnn_relu_cell
    rnn_tanh_cell row_indices rrelu_with_noise rrelu_with_noise_ rrelu_with_noise_backward
    rrelu_with_noise_functional select_backward set_grad_enabled slice_backward
    slice_inverse slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d
    slow_conv_transpose2d slow_conv_transpose3d smooth_l1_loss_backward soft_margin_loss_backward
    softshrink_backward sparse_bsc_tensor sparse_bsr_tensor sparse_csc_tensor sparse_resize
    sparse_resize_ sparse_resize_and_clear sparse_resize_and_clear_ sparse_sampled_addmm sspaddmm
    thnn_conv2d threshold_backward to_dense_backward to_padded_tensor trace_backward
    unfold_backward uniform unique_dim unique_dim_consecutive unsafe_split_with_sizes
    upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d
    upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward upsample_nearest1d
    upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
    upsample_nearest3d_backward upsample_trilinear3d upsample_trilinear3d_backward
    value_selecting_reduction_backward zero
"""

#: Here one op does the whole, so that a call of a step says what to call instead.
KEYS = frozenset(_NAMES.split())


def refusing(name: str) -> Any:
    """Return what a step's packet calls: a function that raises NotImplementedError."""

    def step(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"ops.aten.{name} is a step of an op that tensorplug runs as a whole: call the op, whose "
            "derivative comes with it; the name serves as a key"
        )

    step.__name__ = name
    return step
