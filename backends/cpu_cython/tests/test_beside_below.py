"""Compiled kernels beside the ones below them, which are NumPy's and SciPy's, on arrays of many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

LINALG = tp.linalg
F = tp.nn.functional
DTYPES = ("float32", "float64", "complex64", "complex128")
SIZES = ((1, 1), (3, 3), (5, 2), (2, 5), (33, 33), (0, 0))
BATCHES: tuple[tuple[int, ...], ...] = ((), (2,), (2, 1, 3), (0,))


def matrices(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    values = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(shape)
    made = tp.from_numpy(values.astype(dtype))
    return made.mT.contiguous().mT if rng.integers(2) else made  # both orders of memory


def of_matrices(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield calls of any matrices, and of square ones; what may have any sign as magnitudes."""
    for dtype in DTYPES:
        for batch in BATCHES:
            for rows, columns in SIZES:
                a = matrices(rng, (*batch, rows, columns), dtype)
                b = matrices(rng, (*batch, rows, 2), dtype)
                k = min(rows, columns)
                tau = matrices(rng, (*batch, 1, k), dtype)[..., 0, :]
                where = f"{dtype} {tuple(a.shape)}"
                yield f"qr {where}", lambda a=a: [x.abs() for x in LINALG.qr(a)]
                yield f"complete {where}", lambda a=a: [LINALG.qr(a, "complete").R.abs()]
                yield f"geqrf {where}", lambda a=a: list(tp.geqrf(a))
                yield f"lu_factor {where}", lambda a=a: list(LINALG.lu_factor_ex(a))
                yield f"svd {where}", lambda a=a: [x.abs() for x in LINALG.svd(a, False)]
                yield f"svdvals {where}", lambda a=a: [LINALG.svdvals(a)]
                if rows >= columns:
                    product = LINALG.householder_product
                    yield f"product {where}", lambda a=a, t=tau, f=product: [f(a, t)]
                    yield f"ormqr {where}", lambda a=a, t=tau, b=b: [tp.ormqr(a, t, b)]
                if rows != columns:
                    continue
                hermitian = a @ a.mH + tp.eye(rows, dtype=a.dtype)
                yield f"cholesky {where}", lambda h=hermitian: list(LINALG.cholesky_ex(h))
                yield f"failing {where}", lambda h=-hermitian: [LINALG.cholesky_ex(h).info]
                yield f"ldl {where}", lambda h=hermitian: list(LINALG.ldl_factor_ex(h))
                for half in ("L", "U"):
                    yield (
                        f"eigh {half} {where}",
                        lambda a=a, u=half: [x.abs() for x in LINALG.eigh(a, u)],
                    )
                yield f"eigvalsh {where}", lambda a=a: [LINALG.eigvalsh(a)]
                yield f"solve {where}", lambda h=hermitian, b=b: list(LINALG.solve_ex(h, b))
                yield f"inv {where}", lambda h=hermitian: list(LINALG.inv_ex(h))
                yield f"singular {where}", lambda a=a: [LINALG.inv_ex(a * 0).info]
                for upper in (False, True):
                    solve = LINALG.solve_triangular
                    yield (
                        f"triangular {upper} {where}",
                        lambda h=hermitian, b=b, u=upper, f=solve: [f(h, b, upper=u)],
                    )
                for adjoint in (False, True):
                    yield (
                        f"lu_solve {adjoint} {where}",
                        lambda h=hermitian, b=b, adjoint=adjoint: [
                            LINALG.lu_solve(*LINALG.lu_factor(h), b, adjoint=adjoint)
                        ],
                    )


def of_images(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    for dtype in ("float32", "float64"):
        for dims in (2, 3):
            x = tp.from_numpy(rng.standard_normal((2, 3, 6, 7, 5)[: 2 + dims]).astype(dtype))
            x[0, 0, 0, 1] = float("nan")
            samples = tp.from_numpy(rng.random((2, 3, dims)).astype(dtype))
            pool: Any = getattr(F, f"fractional_max_pool{dims}d")
            for kernel in (1, 2, 3):
                for size in (1, 2, 3):
                    yield (
                        f"{dtype} fractional_max_pool{dims}d {kernel} {size}",
                        lambda x=x, k=kernel, s=size, r=samples, f=pool: list(
                            f(x, k, s, _random_samples=r, return_indices=True)
                        ),
                    )
        x = tp.from_numpy(rng.standard_normal((2, 3, 6, 7)).astype(dtype))
        for kernel, dilation, padding, stride in (
            (2, 1, 0, 1), ((2, 3), 2, 1, (1, 2)), (3, 1, (2, 0), 3), ((6, 1), 1, 4, 1)
        ):  # fmt: skip
            options = (kernel, dilation, padding, stride)
            columns = F.unfold(x, *options)
            yield f"{dtype} unfold {options}", lambda x=x, o=options: [F.unfold(x, *o)]
            yield (
                f"{dtype} fold {options}",
                lambda c=columns, o=options: [F.fold(c, (6, 7), *o)],
            )


def of_positions(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    for dtype in ("float32", "float64", "float16", "int64"):
        for shape in ((), (4,), (3, 4), (2, 3, 4)):
            a, b = (tp.from_numpy(np.asarray(rng.standard_normal(shape) * 9, dtype)) for _ in "ab")
            for dim in range(-1, max(len(shape), 1)):
                size = shape[dim] if shape else 1
                index = tp.from_numpy(np.asarray(rng.integers(0, size, shape)))
                for reduce in ("sum", "prod", "mean", "amax", "amin"):
                    for include_self in (True, False):
                        yield (
                            f"{dtype} {shape} {dim} {reduce} {include_self}",
                            lambda a=a, d=dim, i=index, b=b, r=reduce, s=include_self: [
                                a.scatter_reduce(d, i, b, r, include_self=s)
                            ],
                        )


def of_numbers(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    special: Any = tp.special
    names = (
        "airy_ai",
        "bessel_j0",
        "bessel_j1",
        "bessel_y0",
        "bessel_y1",
        "digamma",
        "erfcx",
        "log_ndtr",
    )
    names += ("modified_bessel_k0", "modified_bessel_k1", "ndtri", "spherical_bessel_j0")
    for dtype in ("float32", "float64"):
        values = np.append(rng.standard_normal(20) * 4, [0.0, -0.0, np.inf, -np.inf, np.nan])
        for shape in ((25,), (5, 5)):
            x = tp.from_numpy(values.astype(dtype).reshape(shape))
            for one in (x, x.mT if x.ndim == 2 else x[::2], x.reshape(-1)[3]):
                for name in names:
                    function = getattr(special, name)
                    yield f"{dtype} {name} {shape}", lambda x=one, f=function: [f(x)]
                for name in ("gammainc", "gammaincc"):
                    function = getattr(special, name)
                    yield (
                        f"{dtype} {name} {shape}",
                        lambda x=one, f=function: [
                            f(x.abs(), x[..., :1].abs() if x.ndim else x.abs())
                        ],
                    )
                for name in ("chebyshev_polynomial_t", "laguerre_polynomial_l"):
                    function = getattr(special, name)
                    yield f"{dtype} {name} {shape}", lambda x=one, f=function: [f(x, 3)]
            yield f"{dtype} diag_embed {shape}", lambda x=x: [tp.diag_embed(x, -1, 0, -1)]
    words = tp.from_numpy(rng.integers(0, 1 << 32, 1000))
    for kind in (tp.float32, tp.float16):
        yield f"{kind} uniform", lambda w=words, k=kind: [tp.ops.uniform_of_words(w, k)]
        yield f"{kind} normal", lambda w=words, k=kind: [tp.ops.normal_of_words(w, w.flip(0), k)]


def of_sequences(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield calls that look for values among others, and those that make sequences."""
    for dtype in ("float32", "float64", "int64", "int32", "int16", "int8", "uint8"):
        for rows, looked_for in (
            ((9,), (4, 5)),
            ((9,), ()),
            ((2, 9), (2, 4)),
            ((9,), (0,)),
            ((0,), (3,)),
        ):
            ordered = np.sort(rng.integers(0, 20, rows).astype(dtype), -1)
            values = rng.integers(0, 22, looked_for).astype(dtype)
            if dtype.startswith("float") and looked_for and values.size:
                values[(0,) * values.ndim] = np.nan
            a, b = tp.from_numpy(ordered), tp.from_numpy(np.array(values))
            for right in (False, True):
                yield (
                    f"{dtype} {rows} {looked_for}",
                    lambda a=a, b=b, r=right: [tp.searchsorted(a, b, right=r)],
                )
                yield (
                    f"{dtype} turned {rows} {looked_for}",
                    lambda a=a, b=b.mT if b.ndim == 2 and a.ndim == 1 else b, r=right: [
                        tp.searchsorted(a, b, right=r)
                    ],
                )
    for dtype in ("float32", "float64"):
        points = tp.from_numpy(rng.standard_normal((50, 3)).astype(dtype))
        weight = tp.from_numpy(rng.random(50).astype(dtype))
        edges = [tp.tensor([-1.0, 0.0, 0.5, 1.0], dtype=points.dtype)] * 2
        for some in (None, weight):
            for given in (points[:, :2], points[:, 1:].clone(), points.T.contiguous().T[:, :2]):
                yield (
                    f"{dtype} grid",
                    lambda p=given, e=edges, w=some: [tp.histogramdd(p, e, weight=w).hist],
                )
                yield (
                    f"{dtype} even grid",
                    lambda p=given, w=some: [*tp.histogramdd(p, [3, 4], weight=w)[1]],
                )
            yield (
                f"{dtype} histogram",
                lambda p=points[:, 0], e=edges[0], w=some: list(tp.histogram(p, e, weight=w)),
            )
        for steps in (2, 3, 100):
            for start, end in ((0.0, 1.0), (-3.0, 2.0), (7.0, -7.0)):
                yield (
                    f"{dtype} linspace {steps}",
                    lambda n=steps, s=start, e=end, d=points.dtype: [tp.linspace(s, e, n, dtype=d)],
                )
    for kind in ("float16", "bfloat16", "int64", "int32", "int8", "complex64", "complex128"):
        ends = ((0, 3), (-3.5, 4.2), (50, 0), *([(1 + 2j, 3 - 1j)] if kind[0] == "c" else []))
        for start, end in ends:
            yield (
                f"{kind} linspace from {start}",
                lambda s=start, e=end, d=kind: [tp.linspace(s, e, 101, dtype=getattr(tp, d))],
            )
    for shape in ((5,), (2, 3), ()):
        indices = tp.from_numpy(rng.integers(0, 4, shape))
        for classes in (-1, 4, 9):
            yield (
                f"one_hot {shape} {classes}",
                lambda i=indices, c=classes: [tp.nn.functional.one_hot(i, c)],
            )


@pytest.mark.parametrize("calls", [of_sequences, of_matrices, of_images, of_positions, of_numbers])
def test_both_give_the_same(calls: Any) -> None:
    rng = np.random.default_rng(7)
    wrong = []
    number = 0
    for name, call in calls(rng):
        number += 1
        found = call()
        with tp.prefer("cpu_numpy"):
            wanted = call()
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype is other.dtype, name
            single = one.dtype in (tp.float32, tp.complex64, tp.float16)
            near = 5e-4 if single else 1e-8
            if one.shape != other.shape or not np.allclose(
                one.numpy(), other.numpy(), near, near, equal_nan=True
            ):
                wrong.append(name)
    assert number > 50
    assert not wrong, f"{len(wrong)} of {number}: {wrong[:10]}"
