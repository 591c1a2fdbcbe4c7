"""What autocast does by default, op by op, as torch documents it.

The names are those of ops. On "cpu" only what is slow in float32, or fails in half precision, is touched. All
other device types get the longer list that torch has for accelerators. A plugin adds the policies of its own
ops through the hook ``tensorplug_autocast``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorplug.core.dispatch.autocast_policies import AutocastPolicy, Policy


def _names(text: str) -> list[str]:
    return text.split()


PRODUCTS = _names(
    "addbmm addmm baddbmm bmm matmul mm linear linear_activation "
    "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
    "linalg_multi_dot linalg_vecdot prelu scaled_dot_product_attention "
    "scaled_dot_product_efficient_attention"
)

LOSSES = _names(
    "binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss hinge_embedding_loss "
    "huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss "
    "nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss"
)

CPU: dict[Policy, list[str]] = {
    "lower": [*PRODUCTS, "lstm_layer", "tensordot"],
    "float32": [
        *LOSSES,
        *_names(
            "adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky "
            "cholesky_inverse cholesky_solve fractional_max_pool2d fractional_max_pool3d geqrf grid_sample "
            "inverse lp_pool3d lu_solve max_pool3d max_unpool1d max_unpool2d max_unpool3d nanquantile orgqr "
            "ormqr pinverse polar "
            "prod qr quantile stft svd trace triangular_solve "
            "view_as_complex"
        ),
        *[
            f"fft_{name}"
            for name in _names(
                "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn"
            )
        ],
        *[
            f"linalg_{name}"
            for name in _names(
                "cholesky cholesky_ex cond eig eigh eigvals eigvalsh householder_product inv inv_ex lstsq "
                "lu_factor lu_factor_ex matrix_rank qr solve svd svdvals tensorinv tensorsolve"
            )
        ],
    ],
    "promote": ["cat", "gru_cell", "gru_layer", "index_copy", "lstm_cell", "stack"],
    "keep": ["matrix_exp"],
}

ACCELERATORS: dict[Policy, list[str]] = {
    "lower": [*PRODUCTS, "addmv", "addr", "gru_cell", "gru_layer", "lstm_cell", "lstm_layer", "mv"],
    "float32": [
        *LOSSES,
        *_names(
            "acos asin cdist cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 group_norm "
            "layer_norm linalg_matrix_norm linalg_vector_norm log log10 log1p log2 log_softmax logsumexp "
            "norm pdist pow prod reciprocal renorm rms_norm rsqrt sinh softmax softmin softplus sum tan"
        ),
    ],
    "promote": _names(
        "addcdiv addcmul atan2 bilinear cat cross dot grid_sample index_put scatter_add stack tensordot "
        "vdot"
    ),
    "refuse": ["binary_cross_entropy"],
}


def policies() -> Iterator[AutocastPolicy]:
    """Yield the policies for "cpu", and those for every other device type."""
    for policy, names in CPU.items():
        for name in names:
            yield AutocastPolicy(name, policy, "cpu")
    on_cpu = {name for names in CPU.values() for name in names}
    for policy, names in ACCELERATORS.items():
        for name in names:
            yield AutocastPolicy(name, policy)
            if name not in on_cpu:
                yield AutocastPolicy(name, "keep", "cpu")
