"""Embeddings whose gradients are sparse, and the optimizers that take them or refuse."""

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # torch says so once per process

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "foreach": False}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "maximize": True, "betas": (0.5, 0.9)}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "maximize": True}),
]
REFUSED = (
    *(
        "Adadelta",
        "Adafactor",
        "Adam",
        "AdamW",
        "Adamax",
        "ASGD",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
    ),
    "Muon",
)


def table_of(lib, mode, **options):
    rows = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    cls = lib.nn.Embedding if mode is None else lib.nn.EmbeddingBag
    table = cls(7, 3, sparse=True, **options, **({} if mode is None else {"mode": mode}))
    with lib.no_grad():
        table.weight.copy_(lib.tensor(rows))
    return table


def train(lib, name, options, mode, steps=6):
    """Losses, the table and the rows of the last gradient of a small training; a step without rows too."""
    rng = np.random.default_rng(1)
    table = table_of(lib, mode, padding_idx=1)
    optimizer = getattr(lib.optim, name)(table.parameters(), **options)
    losses = []
    for step in range(steps):
        chosen = rng.integers(0, 7, (4, 2)) if step != 3 else np.full((1, 1), 1)
        optimizer.zero_grad()
        loss = (table(lib.tensor(chosen)) ** 2).sum()
        loss.backward()
        assert table.weight.grad.is_sparse
        optimizer.step()
        losses.append(loss.item())
    rows = table.weight.grad.coalesce().indices().tolist()
    return losses, table.weight.detach().numpy(), rows


@pytest.mark.parametrize("mode", [None, "sum", "mean"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_training_is_that_of_torch(name, options, mode):
    torch = pytest.importorskip("torch", reason="torch says what training gives")
    losses, table, rows = train(tp, name, options, mode)
    their_losses, their_table, their_rows = train(torch, name, options, mode)
    assert np.allclose(losses, their_losses, rtol=1e-5)
    assert np.allclose(table, their_table, rtol=1e-5, atol=1e-6)
    assert rows == their_rows


@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o in OPTIMIZERS if n == "SGD"])
def test_sgd_is_that_of_dense_gradients(name, options):
    def run(sparse):
        table = tp.nn.Embedding(7, 3, sparse=sparse)
        with tp.no_grad():
            table.weight.copy_(tp.arange(21.0).reshape(7, 3) / 10)
        optimizer = tp.optim.SGD(table.parameters(), **options)
        for step in range(4):
            optimizer.zero_grad()
            (table(tp.tensor([[step, 3], [3, 0]])) ** 2).sum().backward()
            optimizer.step()
        return table.weight.detach().numpy()

    assert np.allclose(run(True), run(False), rtol=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_others_refuse_sparse_gradients(name):
    table = table_of(tp, None)
    optimizer = getattr(tp.optim, name)(table.parameters(), lr=0.1)
    table(tp.tensor([1, 2])).sum().backward()
    before = table.weight.detach().clone()
    shown = "Adam" if name == "AdamW" else name
    with pytest.raises(RuntimeError, match=f"^{shown} does not support sparse gradients"):
        optimizer.step()
    assert tp.equal(table.weight, before)


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_weight_decay_is_refused(name):
    table = table_of(tp, None)
    optimizer = getattr(tp.optim, name)(table.parameters(), lr=0.1, weight_decay=0.1)
    table(tp.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse"):
        optimizer.step()


def test_sparse_adam_refuses_dense_gradients_and_sparse_parameters():
    weight = tp.ones(2, requires_grad=True)
    weight.sum().backward()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        tp.optim.SparseAdam([weight]).step()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        tp.optim.SparseAdam([tp.sparse_coo_tensor((2, 3))])
    groups = [{"params": [weight]}, {"params": [tp.ones(2), tp.ones(2, dtype=tp.complex64)]}]
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[1, 1\]\]"):
        tp.optim.SparseAdam(groups)
    for options in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)}):
        with pytest.raises(ValueError, match="Invalid"):
            tp.optim.SparseAdam([weight], **options)


def test_a_state_is_saved_and_loaded():
    table = table_of(tp, None)
    optimizer = tp.optim.SparseAdam(table.parameters(), lr=0.1)
    table(tp.tensor([1, 2])).sum().backward()
    optimizer.step()
    other = tp.optim.SparseAdam(table.parameters(), lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    (state,) = other.state.values()
    assert state["step"] == 1
    assert tp.equal(state["exp_avg"], optimizer.state[table.weight]["exp_avg"])


def test_gradients_add_up_in_grad():
    table = table_of(tp, None, padding_idx=1)
    table(tp.tensor([1, 2, 2, 0])).sum().backward()
    first = table.weight.grad
    assert first._indices().tolist() == [[2, 2, 0]]
    table(tp.tensor([3])).sum().backward()
    assert table.weight.grad is first
    assert first._indices().tolist() == [[2, 2, 0, 3]]
    (table(tp.tensor([3])).sum() + table.weight.sum()).backward()  # a dense one comes along
    assert table.weight.grad.layout is tp.strided
    assert table.weight.grad[:, 0].tolist() == [2.0, 1.0, 3.0, 3.0, 1.0, 1.0, 1.0]
    table(tp.tensor([0])).sum().backward()
    assert table.weight.grad[:, 0].tolist() == [3.0, 1.0, 3.0, 3.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_two_uses_in_one_pass(create_graph):
    table = table_of(tp, None)
    loss = table(tp.tensor([3])).sum() + table(tp.tensor([2, 3])).sum()
    loss.backward(create_graph=create_graph)
    gradient = table.weight.grad
    assert gradient.is_sparse
    assert gradient.to_dense()[:, 0].tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]


def test_hooks_see_the_sparse_gradient():
    table = table_of(tp, None)
    seen = []
    table.weight.register_hook(lambda g: seen.append(g.layout))
    table.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.layout))
    table(tp.tensor([3])).sum().backward()
    (gradient,) = tp.autograd.grad(table(tp.tensor([4])).sum(), table.weight)
    assert seen == [tp.sparse_coo, tp.sparse_coo, tp.sparse_coo]
    assert gradient.coalesce().indices().tolist() == [[4]]


def test_a_weight_that_is_no_leaf_gets_a_dense_gradient():
    weight = tp.ones(4, 2, requires_grad=True)
    tp.nn.functional.embedding(tp.tensor([1, 1, 3]), weight * 2, sparse=True).sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0], [4.0, 4.0], [0.0, 0.0], [2.0, 2.0]]


def test_zero_grad_and_assignment():
    table = table_of(tp, None)
    table(tp.tensor([3])).sum().backward()
    table.zero_grad(set_to_none=False)
    assert table.weight.grad.is_sparse
    assert table.weight.grad._nnz() == 0
    table.weight.grad = tp.sparse_coo_tensor([[0]], tp.ones(1, 3), (7, 3))
    assert table.weight.grad._nnz() == 1
    with pytest.raises(RuntimeError, match="float64"):
        table.weight.grad = table.weight.grad.double()


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_clipping_is_that_of_dense_gradients(order):
    norms, gradients = [], []
    for sparse in (True, False):
        table = tp.nn.Embedding(7, 3, sparse=sparse)
        weights = tp.arange(12.0).reshape(4, 3)
        (table(tp.tensor([1, 2, 2, 5])) * weights).sum().backward()
        norms.append(tp.nn.utils.clip_grad_norm_(table.parameters(), 1.0, order).item())
        gradients.append(table.weight.grad.to_dense().numpy())
    assert np.allclose(*norms)
    assert np.allclose(*gradients)


def test_scaling_by_frequency_is_refused_in_backward():
    table = table_of(tp, None, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
        table(tp.tensor([1])).sum().backward()


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_graph_convolution_is_that_of_torch(layout):
    """Two layers of adjacency @ X @ W, trained by Adam: losses and weights."""
    torch = pytest.importorskip("torch", reason="torch says what training gives")

    def run(lib):
        rng = np.random.default_rng(5)
        edges = rng.integers(0, 12, (2, 40))
        adjacency = lib.sparse_coo_tensor(
            lib.tensor(edges), lib.tensor(np.full(40, 0.25)), (12, 12)
        ).coalesce()
        adjacency = adjacency if layout == "coo" else adjacency.to_sparse_csr()
        x, target = lib.tensor(rng.normal(size=(12, 5))), lib.tensor(rng.integers(0, 3, 12))
        weights = [
            lib.tensor(rng.normal(size=size), requires_grad=True) for size in ((5, 8), (8, 3))
        ]
        optimizer = lib.optim.Adam(weights, lr=0.05)
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            hidden = lib.relu(lib.sparse.mm(adjacency, x @ weights[0]))
            loss = lib.nn.functional.cross_entropy(adjacency @ (hidden @ weights[1]), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [w.detach().numpy() for w in weights]

    losses, weights = run(tp)
    their_losses, their_weights = run(torch)
    assert np.allclose(losses, their_losses)
    assert all(np.allclose(a, b) for a, b in zip(weights, their_weights, strict=True))
    assert losses[-1] < losses[0]
