"""The rules of ``vmap`` of core's ops, by the functions of :mod:`..batching` that serve them."""

from __future__ import annotations

from ..vmap_rules import shared_rule

_PRIMITIVES = [
    shared_rule("as_is", "cast", "clone", "view_as_real", "view_dtype"),
    shared_rule("copy", "copy"),
    shared_rule("gather", "gather"),
    shared_rule("qr_factor", "qr_factor"),
    shared_rule("view_as_complex", "view_as_complex"),
    shared_rule(
        "as_is",
        "cholesky_factor",
        "householder_qr",
        "matrix_exponential",
        "lu_factor",
        "ldl_factor",
        "eigh",
        "eig",
        "singular_decomposition",
        "frexp_parts",
        "bessel",
    ),
    shared_rule("leading", "solve", "solve_triangular", "orthogonal_polynomial"),
    shared_rule("over_dims", "sum", "mean", "prod", "any", "all", "amax", "amin"),
    shared_rule("over_dims", "flip", "fft_c2c"),
    shared_rule("extreme_place", "argmax", "argmin"),
    shared_rule(
        "along_second_argument",
        "cumsum",
        "cumprod",
        "logcumsumexp",
        "_running_maximum",
        "_order",
    ),
    shared_rule("along_third_argument", "_top_places"),
    shared_rule("scatter", "scatter", "scatter_reduce"),
    shared_rule("view", "view"),
    shared_rule("permute", "permute"),
    shared_rule("expand", "expand"),
    shared_rule("as_strided", "as_strided"),
    shared_rule("unfold", "unfold"),
    shared_rule("diagonal", "diagonal"),
    shared_rule("basic_index", "basic_index"),
    shared_rule("place", "place"),
    shared_rule("matmul", "matmul"),
    shared_rule("cat", "cat"),
    shared_rule("index", "index"),
    shared_rule("index_put", "index_put"),
]

_COMPOSITES = [
    # These look at their inputs, which needs numbers, before they draw.
    shared_rule("random_loop", "bernoulli", "multinomial", "normal", "poisson"),
    shared_rule("laid_out", "clone_strided"),
    shared_rule("whole_as_is", "to_device"),
    # These look whether all went well, which needs a number.
    shared_rule(
        "whole_as_is",
        "cholesky",
        "inverse",
        "linalg_cholesky",
        "linalg_cholesky_ex",
        "linalg_inv",
        "linalg_inv_ex",
        "linalg_ldl_factor",
        "linalg_ldl_factor_ex",
        "linalg_lu_factor",
        "linalg_lu_factor_ex",
        "lu",
    ),
    shared_rule("linalg_solve", "linalg_solve", "linalg_solve_ex"),
    shared_rule("whole_loop", "linalg_lstsq", "linalg_tensorsolve"),
    # These write into what they made.
    shared_rule("diag_embed", "diag_embed"),
    shared_rule(
        "first_batched",
        "as_strided_scatter",
        "diagonal_scatter",
        "select_scatter",
        "slice_scatter",
    ),
    shared_rule(
        "filled",
        "empty_like",
        "full_like",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones_like",
        "zeros_like",
    ),
]

VMAP_RULES = [*_PRIMITIVES, *_COMPOSITES]
