"""Nested containers against torch's: leaves, structures, paths and texts."""

import collections
import json

import pytest

from tensorplug.utils import _pytree as ours

Point = collections.namedtuple("Point", "x y")  # noqa: PYI024

TREES = {
    "leaf": 3,
    "none": None,
    "empty": [(), {}, []],
    "nested": {"b": 1, "a": [2, (3, None)]},
    "named": [Point(1, {"k": 2}), (Point([3], 4),)],
    "ordered": collections.OrderedDict(z=1, a=(2,)),
    "default": collections.defaultdict(list, {"x": [1, 2]}),
    "deque": collections.deque([1, [2]], maxlen=5),
    "set": [{1, 2}, "text", b"bytes"],
}


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("torch.utils._pytree", reason="torch has the answers")


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("is_leaf", [None, lambda part: isinstance(part, tuple)])
def test_as_torch(theirs, name, is_leaf):
    tree = TREES[name]
    leaves, spec = ours.tree_flatten(tree, is_leaf)
    expected, their_spec = theirs.tree_flatten(tree, is_leaf)
    assert leaves == expected == list(ours.tree_iter(tree, is_leaf))
    assert spec.num_leaves == their_spec.num_leaves
    assert spec.num_nodes == their_spec.num_nodes
    assert spec.is_leaf() == their_spec.is_leaf() == ours.tree_is_leaf(tree, is_leaf)
    assert ours.arg_tree_leaves(tree, 0, x=tree) == theirs.arg_tree_leaves(tree, 0, x=tree)
    rebuilt = ours.tree_unflatten(leaves, spec)
    assert rebuilt == tree
    assert type(rebuilt) is type(tree)
    assert getattr(rebuilt, "maxlen", 0) == getattr(tree, "maxlen", 0)
    assert getattr(rebuilt, "default_factory", 0) == getattr(tree, "default_factory", 0)
    paths = [(ours.keystr(path), leaf) for path, leaf in ours.tree_leaves_with_path(tree, is_leaf)]
    named = theirs.tree_leaves_with_path(tree, is_leaf)
    assert paths == [(theirs.keystr(path), leaf) for path, leaf in named]
    found = [ours.key_get(tree, path) for path, _ in ours.tree_leaves_with_path(tree, is_leaf)]
    assert found == leaves
    mapped = ours.tree_map(lambda a, b: [a, b], tree, tree, is_leaf=is_leaf)
    assert mapped == theirs.tree_map(lambda a, b: [a, b], tree, tree, is_leaf=is_leaf)
    only = ours.tree_map_only(int, lambda x: -x, tree, is_leaf)
    assert only == theirs.tree_map_only(int, lambda x: -x, tree, is_leaf)


@pytest.mark.parametrize("name", TREES)
def test_structures_as_text(theirs, name):
    spec = ours.tree_structure(TREES[name])
    text = ours.treespec_dumps(spec)
    assert ours.treespec_loads(text) == spec
    if name != "named":  # torch wants each class of named tuples registered for that
        assert json.loads(text) == json.loads(
            theirs.treespec_dumps(theirs.tree_structure(TREES[name]))
        )


def test_sizes_are_containers(theirs):
    import torch

    import tensorplug as tp

    for library, tree in ((ours, tp.Size([2, 3])), (theirs, torch.Size([2, 3]))):
        leaves, spec = library.tree_flatten([tree, {"k": tree}])
        assert leaves == [2, 3, 2, 3]
        assert spec.num_nodes == 8
        doubled = library.tree_map(lambda n: n / 2, tree)
        assert (type(doubled), doubled) == (tuple, (1.0, 1.5))


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_registered_classes():
    import tensorplug as tp

    with pytest.raises(ValueError, match="must be None or registered"):
        ours.register_pytree_node(Pair, None, None, to_dumpable_context=str)
    ours.register_pytree_node(
        Pair, lambda p: ([p.a, p.b], "context"), lambda ab, _: Pair(*ab), serialized_type_name="test.Pair"
    )  # fmt: skip
    try:
        with pytest.raises(ValueError, match="already registered"):
            ours.register_pytree_node(Pair, lambda p: ([], None), lambda ab, _: Pair(*ab))
        leaves, spec = ours.tree_flatten([Pair(1, (2, 3)), 4])
        assert leaves == [1, 2, 3, 4]
        assert ours.treespec_loads(ours.treespec_dumps(spec)) == spec
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            ours.tree_leaves_with_path(Pair(1, 2))
        x = tp.tensor([1.0, 2.0])
        doubled = tp.vmap(lambda p: Pair(2 * p.a, p.b))(Pair(x, x))
        assert isinstance(doubled, Pair)
        assert doubled.a.tolist() == [2.0, 4.0]
        gradient = tp.func.grad(lambda p: (p.a * p.b).sum())(Pair(x, 3 * x))
        assert gradient.a.tolist() == [3.0, 6.0]
    finally:
        ours._deregister_pytree_node(Pair)
    assert ours.tree_leaves(pair := Pair(1, 2)) == [pair]


def test_what_does_not_fit():
    spec = ours.tree_structure([1, 2])
    with pytest.raises(ValueError, match="has length 1"):
        ours.tree_unflatten([1], spec)
    with pytest.raises(ValueError, match="expected a list"):
        ours.tree_map(lambda a, b: a, [1, 2], (1, 2))
    with pytest.raises(ValueError, match="children"):
        ours.tree_map(lambda a, b: a, [1, 2], [1, 2, 3])
