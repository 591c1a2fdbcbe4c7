"""nn.utils.prune beside torch's: masks, several prunings of one parameter, errors, state dicts."""

import pickle

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the values to compare with")

WEIGHTS = np.random.default_rng(3).permutation(24).reshape(4, 3, 2).astype(np.float32) - 11.3


def layer(m):
    made = m.nn.Conv1d(3, 4, 2)
    with m.no_grad():
        made.weight.copy_(m.from_numpy(WEIGHTS.copy()))
        made.bias.copy_(m.tensor([0.5, -1.0, 2.0, -0.25]))
    return made


def prune(m):
    import importlib

    return importlib.import_module(f"{m.__name__}.nn.utils.prune")


PROGRAMS = {
    "identity": lambda m, p, x: p.identity(x, "weight"),
    "l1": lambda m, p, x: p.l1_unstructured(x, "weight", 0.3),
    "l1, count": lambda m, p, x: p.l1_unstructured(x, "weight", 5),
    "l1, none": lambda m, p, x: p.l1_unstructured(x, "weight", 0),
    "l1, all": lambda m, p, x: p.l1_unstructured(x, "weight", 1.0),
    "l1, scores": lambda m, p, x: p.l1_unstructured(x, "weight", 3, m.arange(24.0).reshape(4, 3, 2)),
    "l1 twice": lambda m, p, x: p.l1_unstructured(p.l1_unstructured(x, "weight", 4), "weight", 0.5),
    "l1 thrice": lambda m, p, x: [p.l1_unstructured(x, "weight", 2) for _ in range(3)][-1],
    "bias too": lambda m, p, x: p.l1_unstructured(p.l1_unstructured(x, "weight", 4), "bias", 2),
    **{
        f"ln {n} {dim}": lambda m, p, x, n=n, dim=dim: p.ln_structured(x, "weight", 1, n, dim)
        for n in (1, 2, float("inf"), -float("inf"))
        for dim in (0, 1, -1)
    },
    "ln, then l1": lambda m, p, x: p.l1_unstructured(p.ln_structured(x, "weight", 2, 2, 0), "weight", 3),
    "l1, then ln": lambda m, p, x: p.ln_structured(p.l1_unstructured(x, "weight", 9), "weight", 0.5, 2, 0),
    "ln twice": lambda m, p, x: p.ln_structured(p.ln_structured(x, "weight", 1, 1, 0), "weight", 1, 1, 0),
    "ln, scores": lambda m, p, x: p.ln_structured(
        x, "weight", 1, 2, 0, importance_scores=m.arange(24.0).reshape(4, 3, 2)
    ),
    "mask": lambda m, p, x: p.custom_from_mask(x, "bias", m.tensor([1, 0, 1, 0])),
    "mask, then l1": lambda m, p, x: p.l1_unstructured(
        p.custom_from_mask(x, "bias", m.tensor([1, 0, 1, 1])), "bias", 1
    ),
    "removed": lambda m, p, x: p.remove(p.l1_unstructured(x, "weight", 0.5), "weight"),
    "removed, pruned": lambda m, p, x: p.l1_unstructured(
        p.remove(p.l1_unstructured(x, "weight", 0.5), "weight"), "weight", 14
    ),
    "global": lambda m, p, x: (
        p.global_unstructured([(x, "weight"), (x, "bias")], p.L1Unstructured, amount=9), x
    )[1],
    "global, again": lambda m, p, x: (
        p.l1_unstructured(x, "bias", 1),
        p.global_unstructured([(x, "weight"), (x, "bias")], p.L1Unstructured, amount=0.5), x,
    )[-1],
    "global, scores": lambda m, p, x: (
        p.global_unstructured(
            [(x, "weight"), (x, "bias")], p.L1Unstructured,
            importance_scores={(x, "bias"): m.tensor([0.0, 9, 0, 9])}, amount=4,
        ), x,
    )[1],
    "amount below": lambda m, p, x: p.l1_unstructured(x, "weight", -1),
    "share above": lambda m, p, x: p.l1_unstructured(x, "weight", 1.5),
    "amount above": lambda m, p, x: p.l1_unstructured(x, "weight", 99),
    "no amount": lambda m, p, x: p.l1_unstructured(x, "weight", "a"),
    "bias by slices": lambda m, p, x: p.ln_structured(x, "bias", 1, 2, 0),
    "a wrong dimension": lambda m, p, x: p.ln_structured(x, "weight", 1, 2, 7),
    "not pruned": lambda m, p, x: p.remove(x, "weight"),
    "no parameter": lambda m, p, x: p.l1_unstructured(x, "nothing", 1),
    "scores of another shape": lambda m, p, x: p.l1_unstructured(x, "bias", 1, m.ones(3)),
    "global, structured": lambda m, p, x: p.global_unstructured(
        [(x, "weight")], p.LnStructured, amount=1, n=2
    ),
    "global, no list": lambda m, p, x: p.global_unstructured(3, p.L1Unstructured, amount=1),
}  # fmt: skip


def outcome(m, program):
    x = layer(m)
    try:
        x = program(m, prune(m), x)
    except Exception as error:
        return type(error)
    result = x(m.ones(1, 3, 5))
    result.sum().backward()
    state = {name: value.tolist() for name, value in x.state_dict().items()}
    grads = {name: value.grad.tolist() for name, value in x.named_parameters()}
    return (
        state,
        grads,
        x.weight.tolist(),
        result.tolist(),
        prune(m).is_pruned(x),
        len(x._forward_pre_hooks),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_torch_prunes(name):
    theirs, ours = outcome(torch, PROGRAMS[name]), outcome(tp, PROGRAMS[name])
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert ours[0].keys() == theirs[0].keys()
    for a, b in zip(ours, theirs, strict=True):
        assert tp.utils._pytree.tree_structure(a) == tp.utils._pytree.tree_structure(b)
        np.testing.assert_allclose(
            tp.utils._pytree.tree_leaves(a), tp.utils._pytree.tree_leaves(b), rtol=1e-5
        )


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_at_random_as_many_as_asked(dim):
    p, x = prune(tp), layer(tp)
    if dim is None:
        p.random_unstructured(x, "weight", 0.25)
        assert (x.weight_mask == 0).sum() == 6
        p.random_unstructured(x, "weight", 6)
        assert (x.weight_mask == 0).sum() == 12
        return
    p.random_structured(x, "weight", 1, dim)
    others = [d for d in range(3) if d != dim % 3]
    kept = x.weight_mask.sum(others)
    assert (kept == 0).sum() == 1
    assert set(x.weight_mask.flatten().tolist()) == {0.0, 1.0}


def test_a_failed_pruning_leaves_the_module():
    p, x = prune(tp), layer(tp)
    names = [name for name, _ in x.named_parameters()]
    for bad in (99, 1.5, -1):
        with pytest.raises(ValueError, match="amount"):
            p.l1_unstructured(x, "weight", bad)
    assert [name for name, _ in x.named_parameters()] == names
    p.l1_unstructured(x, "weight", 2)
    with pytest.raises(ValueError, match="amount"):
        p.l1_unstructured(x, "weight", 99)
    assert len(x._forward_pre_hooks) == 1
    assert (x.weight_mask == 0).sum() == 2


def test_a_method_of_ones_own_and_pickles():
    class EveryOther(prune(tp).BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    x = layer(tp)
    EveryOther.apply(x, "bias")
    assert x.bias_mask.tolist() == [0, 1, 0, 1]
    assert EveryOther().prune(tp.ones(4)).tolist() == [0, 1, 0, 1]
    again = pickle.loads(pickle.dumps(prune(tp).l1_unstructured(layer(tp), "bias", 1)))
    assert prune(tp).is_pruned(again)


@pytest.mark.parametrize("amount", [0, 0.0, 1, 1.0, 3, 0.34, 20, 20.0, 1.1, -1, "many"])
@pytest.mark.parametrize("size", [0, 1, 15, 20])
def test_what_methods_of_others_call(amount, size):
    torch = pytest.importorskip("torch", reason="the helpers have no documentation")

    def told(lib, name, *args):
        try:
            return getattr(prune(lib), name)(*args)
        except Exception as error:
            return type(error)

    for name, args in (
        ("_validate_pruning_amount_init", (amount,)),
        ("_validate_pruning_amount", (amount, size)),
        ("_compute_nparams_toprune", (amount, size)),
    ):
        if name.endswith("_init") or not isinstance(amount, str):
            assert told(tp, name, *args) == told(torch, name, *args)
    for shape, dim in (((3, 4), 0), ((3, 4), -1), ((3, 4), 2), ((5,), 0)):
        x, y = tp.ones(shape), torch.ones(shape)
        assert told(tp, "_validate_structured_pruning", x) == told(
            torch, "_validate_structured_pruning", y
        )
        assert told(tp, "_validate_pruning_dim", x, dim) == told(
            torch, "_validate_pruning_dim", y, dim
        )
    norms = prune(torch)._compute_norm(torch.ones(3, 4), 2, 0)
    assert prune(tp)._compute_norm(tp.ones(3, 4), 2, 0).tolist() == norms.tolist()


def test_recurrent_layers_show_weights_that_are_pruned():
    net = tp.nn.LSTM(3, 2)
    prune(tp).l1_unstructured(net, "weight_ih_l0", 0.5)
    kept = [isinstance(weight, tp.nn.Parameter) for weight in net._flat_weights]
    assert kept == [False, True, True, True]
    prune(tp).remove(net, "weight_ih_l0")
    assert all(isinstance(weight, tp.nn.Parameter) for weight in net._flat_weights)
