"""The kernels of core's ops: the shared ones on CuPy, our own above them, the host for what is left."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import DeviceRuntime, Kernel, KernelTable, host_kernels
from tensorplug.plugin.array_kernels import ArrayNamespace, all_kernels

from ._cupy import cp
from .dtypes import NATIVES
from .kernels import (
    activation,
    attention,
    convolution,
    cumulative,
    dropout,
    embedding,
    indexing,
    linear,
    losses,
    matmul,
    pointwise,
    pooling,
    random,
    rnn,
    softmax,
    sorting,
    special,
    strided,
)
from .kernels.normalization import batch_norm, layer_norm, normalize

#: Shared kernels that are not taken: the ops' bodies do it right in every dtype.
LEFT_OUT = frozenset({"nextafter"})

#: What runs on the host: factorizations and spectra, whose sizes are mostly small and whose errors need
#: LAPACK's info on the host anyway.
ON_THE_HOST = (
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "geqrf",
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
    "linalg_lstsq",
    "linalg_lu_factor_ex",
    "matrix_exp",
    "linalg_qr",
    "linalg_svd",
    "linalg_solve_ex",
    "linalg_solve_triangular",
)


def core_kernels(runtime: DeviceRuntime) -> list[Kernel]:
    """Return the kernels of core's ops."""
    host = {
        kernel.op: kernel.function for kernel in host_kernels(runtime, ("bessel", "scatter_reduce"))
    }
    # Positions out of bounds are not looked for: that would wait for the device at each gather.
    namespace = ArrayNamespace(_arrays(), "cuda", NATIVES, checks_bounds=False)
    table = KernelTable("cuda")
    table.kernels += [kernel for kernel in all_kernels(namespace) if kernel.op not in LEFT_OUT]
    matmul.build(table)
    pointwise.build(namespace, table)
    indexing.build(table, host["scatter_reduce"])
    random.build(table)
    cumulative.build(namespace, table)
    softmax.build(table)
    sorting.build(table)
    special.build(namespace, table, host["bessel"])
    strided.build(table)
    table.kernels += list(host_kernels(runtime, ON_THE_HOST))
    return table.settled()


def network_kernels() -> KernelTable:
    """Return the kernels of nn's ops; they import CuPy when they run."""
    table = KernelTable("cuda")
    for family in (
        activation,
        attention,
        batch_norm,
        convolution,
        dropout,
        embedding,
        layer_norm,
        linear,
        losses,
        normalize,
        pooling,
        rnn,
    ):
        family.build(table)
    return table


def _arrays() -> Any:
    return cp
