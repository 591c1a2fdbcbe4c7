"""Operators of ``ai.onnx.ml`` other than trees: linear models, support vectors, encoders and scalers.

Labels that are strings come as lists of them, and maps as lists of dicts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor
from tensorplug.nn import functional as F

from ..registry import operator
from ..values import dtype_of

__all__ = ["labels_of", "post_transformed"]

_ML = "ai.onnx.ml"


def _floating(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else x.float()


def _softmax_zero(scores: Tensor) -> Tensor:
    """Softmax in which zeros count for nothing but their share."""
    largest = ops.amax(scores, -1, keepdim=True)
    zero = ops.abs(scores) <= 1e-7
    each = ops.where(zero, scores * ops.exp(-largest), ops.exp(scores - largest))
    total = ops.sum(each, -1, keepdim=True)
    return ops.where(total == 0, ops.full_like(each, 0.5), each / ops.where(total == 0, 1, total))


def _probit(x: Tensor) -> Tensor:
    return 2**0.5 * ops.erfinv(2 * x - 1)


_POST: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda x: x,
    "LOGISTIC": ops.sigmoid,
    "SOFTMAX": lambda x: F.softmax(x, -1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def post_transformed(scores: Tensor, name: str) -> Tensor:
    """Return scores as a classifier's attribute says."""
    return _POST[name](scores)


def labels_of(places: Tensor, ints: Sequence[int] | None, strings: Sequence[str] | None) -> Any:
    """Return the labels at places in a list of them: a tensor, or a list of strings."""
    if strings:
        return [strings[i] for i in places.tolist()]
    if ints:
        return tensor(ints, dtype=dtype_of(7), device=places.device)[places]
    return places


def _matrices(attributes: dict[str, Any]) -> dict[str, Any]:
    """Make tensors of a linear model's numbers."""
    result = dict(attributes)
    for name in ("coefficients", "intercepts"):
        if result.get(name):
            result[name] = tensor(result[name], dtype=dtype_of(1), device="cpu")
    return result


@operator("LinearRegressor", domain=_ML, prepare=_matrices, trained=("coefficients", "intercepts"))
def linear_regressor(
    X: Tensor,
    *,
    coefficients: Tensor,
    intercepts: Tensor | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:
    x = _floating(X)
    bias = None if intercepts is None else intercepts.to(x.dtype)
    scores = F.linear(x, coefficients.reshape(targets, -1).to(x.dtype), bias)
    return post_transformed(scores, post_transform)


@operator("LinearClassifier", domain=_ML, prepare=_matrices, trained=("coefficients", "intercepts"))
def linear_classifier(
    X: Tensor,
    *,
    coefficients: Tensor,
    intercepts: Tensor | None = None,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Any, Tensor]:
    x = _floating(X)
    bias = None if intercepts is None else intercepts.to(x.dtype)
    scores = F.linear(x, coefficients.reshape(-1, X.shape[1]).to(x.dtype), bias)
    count = len(classlabels_ints or classlabels_strings or ())
    if scores.shape[1] == 1 and count == 2:
        scores = ops.cat([-scores, scores], 1)
    scores = post_transformed(scores, post_transform)
    if scores.shape[1] > 1:
        return labels_of(ops.argmax(scores, dim=1), classlabels_ints, classlabels_strings), scores
    above = scores[:, 0] >= (0 if post_transform == "NONE" else 0.5)
    if classlabels_strings:
        return [classlabels_strings[0] if yes else "" for yes in above.tolist()], scores
    label = classlabels_ints[0] if classlabels_ints else 1
    return above.long() * label, scores


# --- support vectors -----------------------------------------------------------------------------


def _vectors(attributes: dict[str, Any]) -> dict[str, Any]:
    result = dict(attributes)
    for name in ("coefficients", "support_vectors", "rho", "prob_a", "prob_b"):
        if result.get(name):
            result[name] = tensor(result[name], dtype=dtype_of(1), device="cpu")
    return result


def _kernel(x: Tensor, vectors: Tensor, kind: str, parameters: Sequence[float] | None) -> Tensor:
    """Return the kernel of each row with each vector."""
    gamma, constant, degree = parameters or (0.0, 0.0, 0.0)
    if kind == "RBF":
        square = ops.sum((x[:, None] - vectors) ** 2, -1)
        return ops.exp(-gamma * square)
    product = ops.matmul(x, vectors.T)
    if kind == "POLY":
        return (gamma * product + constant) ** degree
    return ops.tanh(gamma * product + constant) if kind == "SIGMOID" else product


@operator("SVMRegressor", domain=_ML, prepare=_vectors, trained=("coefficients", "rho"))
def svm_regressor(
    X: Tensor,
    *,
    coefficients: Tensor,
    rho: Tensor,
    support_vectors: Tensor | None = None,
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
) -> Tensor:
    x = _floating(X)
    if n_supports and support_vectors is not None:
        vectors = support_vectors.reshape(n_supports, -1).to(x.dtype)
        x = _kernel(x, vectors, kernel_type, kernel_params)
    scores = ops.matmul(x, coefficients.to(x.dtype))[:, None] + rho[0]
    if one_class:
        return ops.where(scores > 0, 1.0, -1.0).to(x.dtype)
    return post_transformed(scores, post_transform)


@operator("SVMClassifier", domain=_ML, prepare=_vectors, trained=("coefficients", "rho"))
def svm_classifier(
    X: Tensor,
    *,
    coefficients: Tensor,
    rho: Tensor,
    support_vectors: Tensor | None = None,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Tensor | None = None,
    prob_b: Tensor | None = None,
    vectors_per_class: Sequence[int] | None = None,
) -> tuple[Any, Tensor]:
    """Decide between each pair of classes; the one that wins most pairs is the label (libsvm's way)."""
    x = _floating(X)
    count = len(classlabels_ints or classlabels_strings or ())
    if not vectors_per_class or support_vectors is None:  # a weight per class and feature
        weights = coefficients.reshape(count, -1).to(x.dtype)
        scores = _kernel(x, weights, kernel_type, kernel_params) + rho[0]
        places = ops.argmax(scores, dim=1)
        return (
            labels_of(places, classlabels_ints, classlabels_strings),
            post_transformed(scores, post_transform),
        )
    total = sum(vectors_per_class)
    kernels = _kernel(x, support_vectors.reshape(total, -1).to(x.dtype), kernel_type, kernel_params)
    duals = coefficients.reshape(-1, total).to(x.dtype)
    ends = list(itertools.accumulate(vectors_per_class, initial=0))
    pairs = list(itertools.combinations(range(len(vectors_per_class)), 2))
    columns: list[Tensor] = []
    for n, (i, j) in enumerate(pairs):
        own, other = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        one = ops.matmul(kernels[:, own], duals[j - 1, own])
        two = ops.matmul(kernels[:, other], duals[i, other])
        columns.append(one + two + rho[n])
    scores = ops.stack(columns, 1)
    won = [ops.zeros(x.shape[0], dtype=dtype_of(7), device=x.device) for _ in vectors_per_class]
    for n, (i, j) in enumerate(pairs):
        first = scores[:, n] > 0
        won[i] = won[i] + first
        won[j] = won[j] + ~first
    places = ops.argmax(ops.stack(won, 1), dim=1)
    if prob_a is not None and prob_b is not None:
        sure = ops.clamp(1 - ops.sigmoid(scores * prob_a + prob_b), 1e-7, 1 - 1e-7)
        scores = _coupled(sure, pairs, len(won))
    elif len(pairs) == 1:
        scores = ops.cat([-scores, scores], 1) if post_transform != "NONE" else scores
        if scores.shape[1] == 1:
            scores = ops.cat([scores, -scores], 1) * -1
    return (
        labels_of(places, classlabels_ints, classlabels_strings),
        post_transformed(scores, post_transform),
    )


def _coupled(sure: Tensor, pairs: Sequence[tuple[int, int]], count: int) -> Tensor:
    """Return probabilities of classes from those of pairs, by libsvm's iteration.

    Wu, Lin and Weng (2004), algorithm 2; it stops early, so that results are those of libsvm to the last
    digits only if its steps are taken.
    """
    r = ops.zeros((sure.shape[0], count, count), dtype=sure.dtype, device=sure.device)
    for n, (i, j) in enumerate(pairs):
        r[:, i, j] = sure[:, n]
        r[:, j, i] = 1 - sure[:, n]
    q = ops.diag_embed(ops.sum(r * r, 1)) - ops.transpose(r, 1, 2) * r
    p = ops.full_like(r[:, 0], 1 / count)
    for _ in range(max(100, count)):
        qp = ops.matmul(q, p[..., None])[..., 0]
        pqp = ops.sum(p * qp, 1, keepdim=True)
        going = ops.amax(ops.abs(qp - pqp), 1, keepdim=True) >= 0.005 / count
        if not bool(ops.any(going)):
            break
        for t in range(count):
            step = ops.where(going, (pqp - qp[:, t : t + 1]) / q[:, t, t : t + 1], 0.0)
            pqp = (pqp + step * (step * q[:, t, t : t + 1] + 2 * qp[:, t : t + 1])) / (
                1 + step
            ) ** 2
            qp = (qp + step * q[:, t]) / (1 + step)
            p = (p + step * (ops.arange(count, device=p.device) == t)) / (1 + step)
    return p


# --- preparation of features ---------------------------------------------------------------------


@operator("Scaler", domain=_ML)
def scaler(
    X: Tensor, *, offset: Sequence[float] | None = None, scale: Sequence[float] | None = None
) -> Tensor:
    x = X if X.dtype.is_floating_point else X.float()
    if offset:
        x = x - tensor(offset, dtype=x.dtype, device=x.device)
    return x * tensor(scale, dtype=x.dtype, device=x.device) if scale else x


@operator("Normalizer", domain=_ML)
def normalizer(X: Tensor, *, norm: str = "MAX") -> Tensor:
    x = _floating(X)
    if norm == "MAX":
        size = ops.amax(x, -1, keepdim=True)
    elif norm == "L1":
        size = ops.sum(ops.abs(x), -1, keepdim=True)
    else:
        size = ops.sqrt(ops.sum(x * x, -1, keepdim=True))
    return x / ops.where(size == 0, ops.ones_like(size), size)


@operator("Binarizer", domain=_ML)
def binarizer(X: Tensor, *, threshold: float = 0.0) -> Tensor:
    return (threshold < X).to(X.dtype)


@operator("Imputer", domain=_ML)
def imputer(
    X: Tensor,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    if X.dtype.is_floating_point:
        old, new = replaced_value_float, imputed_value_floats or [0.0]
    else:
        old, new = replaced_value_int64, imputed_value_int64s or [0]
    missing: Any = ops.isnan(X) if old != old else X.eq(old)
    return ops.where(missing, tensor(new, dtype=X.dtype, device=X.device), X)


@operator("ArrayFeatureExtractor", domain=_ML)
def array_feature_extractor(X: Tensor, Y: Tensor) -> Tensor:
    rows = X if X.dim() > 1 else X[None]
    return ops.index_select(rows, -1, Y.reshape(-1).long())


@operator("FeatureVectorizer", domain=_ML)
def feature_vectorizer(*X: Tensor, inputdimensions: Sequence[int] | None = None) -> Tensor:
    return ops.cat([_floating(x).reshape(x.shape[0], -1) for x in X], 1)


@operator("OneHotEncoder", domain=_ML)
def one_hot_encoder(
    X: Any,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Tensor:
    if cats_strings:
        return tensor(_hot(X, cats_strings))
    classes = tensor(cats_int64s, device=X.device)
    return (X.long()[..., None] == classes).float()


def _hot(value: Any, categories: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_hot(item, categories) for item in value]
    return [float(value == category) for category in categories]


def _keys(attributes: dict[str, Any]) -> dict[str, Any]:
    """Reduce a label encoder's attributes to keys, values and what is given for other labels."""
    if attributes.get("classes_strings"):  # version 1: between strings and their places
        words = list(attributes["classes_strings"])
        return {"strings": words, "default": attributes.get("default_int64", -1)}
    keys, _ = _given(attributes, "keys")
    values, name = _given(attributes, "values")
    default = attributes.get(f"default_{name}", _DEFAULTS[name])
    if isinstance(default, Tensor):
        default = default.item() if default.numel() == 1 else default.tolist()
    if any(isinstance(v, str) for v in [*_plain(keys), *_plain(values)]):
        kind = values.dtype if isinstance(values, Tensor) else None
        return {"keys": _plain(keys), "values": _plain(values), "default": default, "dtype": kind}
    if isinstance(values, Tensor):
        kind = values.dtype
    else:
        kind = dtype_of(1 if name == "float" else 7)
    return {
        "keys": tensor(_plain(keys), device="cpu"),
        "values": tensor([*_plain(values), default or 0], dtype=kind, device="cpu"),
    }


#: What other labels become, by the kind of values.
_DEFAULTS = {"string": "_Unused", "int64": -1, "float": -0.0, "tensor": None}


def _given(attributes: dict[str, Any], part: str) -> tuple[Any, str]:
    """Return keys or values of a label encoder, and their kind."""
    for kind in ("string", "int64", "float"):
        if attributes.get(f"{part}_{kind}s") is not None:
            return attributes[f"{part}_{kind}s"], kind
    return attributes[f"{part}_tensor"], "tensor"


def _plain(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return value.reshape(-1).tolist()
    return list(value) if isinstance(value, (list, tuple)) else [value]


@operator(
    "LabelEncoder",
    domain=_ML,
    prepare=_keys,
    attributes=[
        f"{part}_{kind}"
        for part in ("keys", "values", "default")
        for kind in ("strings", "int64s", "floats", "tensor", "string", "int64", "float")
    ]
    + ["classes_strings"],
)
def label_encoder(
    X: Any,
    *,
    keys: Any = None,
    values: Any = None,
    default: Any = None,
    dtype: Any = None,
    strings: Sequence[str] | None = None,
) -> Any:
    if strings is not None:
        keys, values = strings, list(range(len(strings)))
        if isinstance(X, Tensor):
            keys, values, default = values, keys, "_Unused"
    if not isinstance(keys, Tensor):
        table = dict(zip(keys, values, strict=True))
        found = _mapped(X.tolist() if isinstance(X, Tensor) else X, table, default)
        if isinstance(values[0], str):
            return found
        return tensor(found, dtype=dtype or dtype_of(1 if isinstance(values[0], float) else 7))
    equal = X[..., None] == keys
    if keys.dtype.is_floating_point:
        equal = equal | (ops.isnan(X)[..., None] & ops.isnan(keys))
    last = ops.full_like(equal[..., :1], True)
    first = ops.argmax(ops.cat([equal, last], -1).int(), dim=-1)
    return values[first]


def _mapped(value: Any, table: Mapping[Any, Any], default: Any) -> Any:
    if isinstance(value, list):
        return [_mapped(item, table, default) for item in value]
    return table.get(value, default)


@operator("CategoryMapper", domain=_ML)
def category_mapper(
    X: Any,
    *,
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Any:
    if isinstance(X, Tensor):
        names = dict(zip(cats_int64s, cats_strings, strict=True))
        return [names.get(x, default_string) for x in X.reshape(-1).tolist()]
    numbers = dict(zip(cats_strings, cats_int64s, strict=True))
    return tensor([numbers.get(x, default_int64) for x in X])


@operator("ZipMap", domain=_ML)
def zip_map(
    X: Tensor,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> list[dict[Any, float]]:
    labels: Sequence[Any] = classlabels_strings or classlabels_int64s or ()
    rows = X if X.dim() == 2 else X[None]
    return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]


@operator("DictVectorizer", domain=_ML)
def dict_vectorizer(
    X: Any,
    *,
    int64_vocabulary: Sequence[int] | None = None,
    string_vocabulary: Sequence[str] | None = None,
) -> Tensor:
    words: Sequence[Any] = string_vocabulary or int64_vocabulary or ()
    rows: list[Mapping[Any, Any]] = X if isinstance(X, list) else [X]
    return tensor([[row.get(word, 0) for word in words] for row in rows])


@operator("CastMap", domain=_ML)
def cast_map(
    X: Mapping[int, Any], *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Any:
    if map_form == "SPARSE":
        values: list[Any] = [X.get(i, 0) for i in range(max_map)]
    else:
        values = [X[key] for key in sorted(X)]
    if cast_to == "TO_STRING":
        return [str(v) for v in values]
    kind = dtype_of(1 if cast_to == "TO_FLOAT" else 7)
    return tensor([float(v) for v in values]).to(kind)[None]
