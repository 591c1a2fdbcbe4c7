"""Why some primitives cannot be written."""

from __future__ import annotations

__all__ = ["REASONS"]

_DECOMPOSITION = "ONNX has no decompositions of matrices and solves no systems"
_FUNCTION = "ONNX has no such function"
_RANDOM = "numbers of a stream that goes on from call to call: ONNX draws others"

#: By the name of the op.
REASONS = {
    **dict.fromkeys(
        (
            "geqrf",
            "linalg_cholesky_ex",
            "linalg_eig",
            "linalg_eigh",
            "linalg_ldl_factor_ex",
            "linalg_ldl_solve",
            "linalg_lstsq",
            "linalg_lu_factor_ex",
            "linalg_qr",
            "linalg_solve_ex",
            "linalg_solve_triangular",
            "linalg_svd",
            "matrix_exp",
        ),
        _DECOMPOSITION,
    ),
    **dict.fromkeys(
        (
            "bessel",
            "digamma",
            "erfinv",
            "frexp",
            "gcd",
            "igamma",
            "igammac",
            "lgamma",
            "orthogonal_polynomial",
            "special_erfcx",
            "special_zeta",
        ),
        _FUNCTION,
    ),
    "philox_bits": _RANDOM,
    "view_dtype": "BitCast is of opset 26, and onnxruntime lacks it",
}
