"""Ensembles of decision trees: all trees go down together, one step for all samples at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor

from ..registry import operator
from ..values import dtype_of
from .sklearn import labels_of, post_transformed

__all__: list[str] = []

_ML = "ai.onnx.ml"
_MODES = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"]
_COMPARE = [ops.le, ops.lt, ops.ge, ops.gt, ops.eq, ops.ne]
_POST = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
_AGGREGATE = ["AVERAGE", "SUM", "MIN", "MAX"]


def _list(attributes: dict[str, Any], name: str) -> Any:
    """Return numbers that are an attribute of their own, or one that is a tensor."""
    found = attributes.get(f"{name}_as_tensor")
    return found.tolist() if isinstance(found, Tensor) else attributes.get(name)


def _forest(
    features: Sequence[int],
    splits: Sequence[float],
    modes: Sequence[int],
    yes: Sequence[int],
    no: Sequence[int],
    missing: Sequence[int],
    roots: Sequence[int],
    leaves: Sequence[int],
    double: bool,
) -> dict[str, Any]:
    """Return the tensors of nodes, of which leaves lead to themselves, and how deep they lie."""
    depth, level, seen = 0, set(roots), set(roots)
    ends = set(leaves)
    while level := {child for n in level - ends for child in (yes[n], no[n])} - ends:
        depth += 1
        if depth > len(features) or level & set(roots) & seen:
            raise NotImplementedError("trees whose nodes lead in a circle")
    kinds = sorted({modes[n] for n in range(len(modes)) if n not in ends}) or [0]
    kind = dtype_of(11 if double else 1)
    return {
        "features": tensor(features, dtype=dtype_of(7), device="cpu"),
        "splits": tensor(splits, dtype=kind, device="cpu"),
        "modes": tensor(modes, dtype=dtype_of(7), device="cpu"),
        "children": tensor([no, yes], dtype=dtype_of(7), device="cpu"),
        "missing": tensor(missing, dtype=dtype_of(9), device="cpu"),
        "roots": tensor(roots, dtype=dtype_of(7), device="cpu"),
        "kinds": tuple(kinds),
        "depth": depth + 1,
    }


def _by_nodes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors of trees whose nodes are numbered within each tree."""
    trees, nodes = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    place = {key: n for n, key in enumerate(zip(trees, nodes, strict=True))}
    names = [mode.removeprefix("BRANCH_") for mode in attributes["nodes_modes"]]
    leaves = [n for n, name in enumerate(names) if name == "LEAF"]
    ends = set(leaves)
    yes, no = (
        [n if n in ends else place[trees[n], child] for n, child in enumerate(attributes[which])]
        for which in ("nodes_truenodeids", "nodes_falsenodeids")
    )
    values = attributes.get("nodes_values_as_tensor")
    children = {yes[n] for n in range(len(yes)) if n not in ends}
    children |= {no[n] for n in range(len(no)) if n not in ends}
    return _forest(
        attributes["nodes_featureids"],
        _list(attributes, "nodes_values"),
        [0 if name == "LEAF" else _MODES.index(name) for name in names],
        yes,
        no,
        attributes.get("nodes_missing_value_tracks_true") or [0] * len(names),
        [n for n in range(len(names)) if n not in children],
        leaves,
        isinstance(values, Tensor) and values.dtype == dtype_of(11),
    ) | {"place": place}


def _weights(
    attributes: dict[str, Any], place: dict[Any, int], what: str, count: int, low: float
) -> Tensor:
    """Return what each node adds to each target."""
    found = attributes.get(f"{what}_weights_as_tensor")
    kind = found.dtype if isinstance(found, Tensor) else dtype_of(1)
    rows = [[low] * count for _ in place]
    keys = zip(attributes[f"{what}_treeids"], attributes[f"{what}_nodeids"], strict=True)
    for key, target, weight in zip(
        keys, attributes[f"{what}_ids"], _list(attributes, f"{what}_weights"), strict=True
    ):
        row = rows[place[key]]
        row[target] = weight if low else row[target] + weight
    return tensor(rows, dtype=kind, device="cpu")


def _leaves(
    x: Tensor,
    features: Tensor,
    splits: Tensor,
    modes: Tensor,
    children: Tensor,
    missing: Tensor,
    roots: Tensor,
    kinds: Sequence[int],
    depth: int,
) -> Tensor:
    """Return the leaf that each sample reaches in each tree."""
    x = x if x.dtype.is_floating_point else x.float()
    nodes = roots.expand(x.shape[0], -1)
    for _ in range(depth):
        value = ops.gather(x, 1, features[nodes])
        split = splits[nodes]
        taken = _COMPARE[kinds[0]](value, split)
        for kind in kinds[1:]:
            taken = ops.where(modes[nodes] == kind, _COMPARE[kind](value, split), taken)
        taken = taken | (missing[nodes] & ops.isnan(value))
        nodes = ops.where(taken, children[1][nodes], children[0][nodes])
    return nodes


_NODES = [
    "nodes_falsenodeids",
    "nodes_featureids",
    "nodes_missing_value_tracks_true",
    "nodes_modes",
    "nodes_nodeids",
    "nodes_treeids",
    "nodes_truenodeids",
    "nodes_values",
    "nodes_values_as_tensor",
    "base_values_as_tensor",
]


def _base(attributes: dict[str, Any]) -> dict[str, Any]:
    values = _list(attributes, "base_values")
    return {"base_values": tensor(values, dtype=dtype_of(1), device="cpu")} if values else {}


def _prepared_classifier(attributes: dict[str, Any]) -> dict[str, Any]:
    ints = attributes.get("classlabels_int64s")
    strings = attributes.get("classlabels_strings")
    forest = _by_nodes(attributes)
    count = len(ints or strings or ())
    weights = _weights(attributes, forest.pop("place"), "class", count, 0.0)
    return (
        forest
        | _base(attributes)
        | {
            "weights": weights,
            "binary": len(set(attributes["class_ids"])) == 1,
            "post_transform": attributes.get("post_transform", "NONE"),
            "classlabels_int64s": ints,
            "classlabels_strings": strings,
        }
    )


@operator(
    "TreeEnsembleClassifier",
    domain=_ML,
    prepare=_prepared_classifier,
    trained=("weights", "base_values"),
    attributes=[
        *_NODES,
        "class_ids",
        "class_nodeids",
        "class_treeids",
        "class_weights",
        "class_weights_as_tensor",
    ],
)
def tree_classifier(
    X: Tensor,
    *,
    weights: Tensor,
    binary: bool,
    base_values: Tensor | None = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    post_transform: str = "NONE",
    **forest: Any,
) -> tuple[Any, Tensor]:
    scores = ops.sum(weights[_leaves(X, **forest)], 1)
    if base_values is not None:
        scores = scores + base_values
    ints = classlabels_int64s
    if binary:  # one column says both: the second class's score, and its complement
        second = scores[:, :1]
        plain = post_transform in ("NONE", "PROBIT")
        first = 1 - second if plain else -second
        scores = ops.cat([first, second], 1)
        if ints and len(ints) == 1:
            ints = [0, ints[0]]
    scores = post_transformed(scores, post_transform)
    places = ops.argmax(scores, dim=1)
    return labels_of(places, ints, classlabels_strings), scores


def _prepared_regressor(attributes: dict[str, Any]) -> dict[str, Any]:
    forest = _by_nodes(attributes)
    how = attributes.get("aggregate_function", "SUM")
    low = {"MIN": math.inf, "MAX": -math.inf}.get(how, 0.0)
    count = attributes.get("n_targets", 1)
    weights = _weights(attributes, forest.pop("place"), "target", count, low)
    return (
        forest
        | _base(attributes)
        | {
            "weights": weights,
            "aggregate_function": how,
            "post_transform": attributes.get("post_transform", "NONE"),
        }
    )


@operator(
    "TreeEnsembleRegressor",
    domain=_ML,
    prepare=_prepared_regressor,
    trained=("weights", "base_values"),
    attributes=[
        *_NODES,
        "n_targets",
        "target_ids",
        "target_nodeids",
        "target_treeids",
        "target_weights",
        "target_weights_as_tensor",
    ],
)
def tree_regressor(
    X: Tensor,
    *,
    weights: Tensor,
    base_values: Tensor | None = None,
    aggregate_function: str = "SUM",
    post_transform: str = "NONE",
    **forest: Any,
) -> Tensor:
    each = weights[_leaves(X, **forest)]
    if aggregate_function == "MIN":
        scores = ops.amin(each, 1)
    elif aggregate_function == "MAX":
        scores = ops.amax(each, 1)
    else:
        scores = (ops.mean if aggregate_function == "AVERAGE" else ops.sum)(each, 1)
    if base_values is not None:
        scores = scores + base_values
    return post_transformed(scores, post_transform)


def _prepared_ensemble(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors of trees that number nodes and leaves over all of them.

    A node that asks for membership in a set becomes a chain of nodes that ask for one value each.
    """
    features = list(attributes["nodes_featureids"])
    splits = attributes["nodes_splits"].tolist()
    modes = attributes["nodes_modes"].tolist()
    inner = len(features)
    leaf_at = [len(modes)]

    def target(child: int, is_leaf: int) -> tuple[bool, int]:
        return bool(is_leaf), child

    yes = [
        target(*pair)
        for pair in zip(attributes["nodes_truenodeids"], attributes["nodes_trueleafs"], strict=True)
    ]
    no = [
        target(*pair)
        for pair in zip(
            attributes["nodes_falsenodeids"], attributes["nodes_falseleafs"], strict=True
        )
    ]
    missing = list(attributes.get("nodes_missing_value_tracks_true") or [0] * inner)
    members = iter(
        attributes["membership_values"].tolist() if "membership_values" in attributes else ()
    )
    for n in range(inner):
        if modes[n] != 6:
            continue
        values: list[float] = []
        for value in members:
            if math.isnan(value):
                break
            values.append(value)
        at, rest = n, no[n]
        for i, value in enumerate(values):
            modes[at], splits[at] = 4, value  # EQ
            if i + 1 < len(values):
                new = len(features)
                features.append(features[n])
                splits.append(0.0)
                modes.append(4)
                yes.append(yes[n])
                no.append(rest)
                missing.append(missing[n])
                no[at] = (False, new)
                at = new
    leaf_at = [len(features)]
    weights = attributes["leaf_weights"]
    targets = attributes["leaf_targetids"]
    count = attributes.get("n_targets", 1)
    how = _AGGREGATE[attributes.get("aggregate_function", 1)]
    low = {"MIN": math.inf, "MAX": -math.inf}.get(how, 0.0)
    rows = [[low] * count for _ in range(leaf_at[0] + len(targets))]
    for n, (target_id, weight) in enumerate(zip(targets, weights.tolist(), strict=True)):
        rows[leaf_at[0] + n][target_id] = weight
    leaves = list(range(leaf_at[0], len(rows)))
    paths = [
        [leaf_at[0] + child if leaf else child for leaf, child in side] + leaves
        for side in (yes, no)
    ]
    more = [0] * len(leaves)
    roots = [
        root if not (yes[root] == no[root] and yes[root][0]) else paths[0][root]
        for root in attributes["tree_roots"]
    ]
    return _forest(
        features + more,
        splits + [0.0] * len(leaves),
        modes + more,
        paths[0],
        paths[1],
        missing + more,
        roots,
        leaves,
        weights.dtype == dtype_of(11),
    ) | {
        "weights": tensor(rows, dtype=weights.dtype, device="cpu"),
        "aggregate_function": how,
        "post_transform": _POST[attributes.get("post_transform", 0)],
    }


operator(
    "TreeEnsemble",
    domain=_ML,
    prepare=_prepared_ensemble,
    trained=("weights",),
    attributes=[
        "leaf_targetids",
        "leaf_weights",
        "membership_values",
        "n_targets",
        "nodes_falseleafs",
        "nodes_falsenodeids",
        "nodes_featureids",
        "nodes_missing_value_tracks_true",
        "nodes_modes",
        "nodes_splits",
        "nodes_trueleafs",
        "nodes_truenodeids",
        "tree_roots",
    ],
)(tree_regressor)
