"""Threads that build and differentiate graphs at the same time get what one would get.

All numbers are small integers, so sums are exact in any order and a lost update shows.
"""

import sys
import threading

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.utils.checkpoint import checkpoint

THREADS = 6
ROUNDS = 60


@pytest.fixture(autouse=True)
def often_interrupted():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Run functions in threads that start at once; raise what any of them raised."""
    failures = []
    start = threading.Barrier(len(works))

    def guarded(work):
        try:
            start.wait()
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def integers(*shape):
    return tp.randint(-3, 4, shape).to(tp.float64)


@pytest.mark.parametrize("size", [3, 20_000])  # NumPy lets other threads run in long loops only
def test_gradients_of_shared_leaves_add_up(size):
    """Also the first ones, when no gradient is there yet, and through every way to record."""
    for _ in range(5):
        leaves = [integers(size).requires_grad_() for _ in range(2)]

        def work(leaves=leaves):
            a, b = leaves
            for number in range(ROUNDS // 5):
                y = (a * b + 2 * a).sum()
                if number % 4 == 0:
                    y.backward(retain_graph=True)
                    y.backward(inputs=[a])
                    y = b.sum()
                y.backward()

        together(*[work] * THREADS)
        a, b = leaves
        rounds = THREADS * ROUNDS // 5
        quarter = THREADS * ((ROUNDS // 5 + 3) // 4)
        assert (a.grad == (rounds + quarter) * (b.detach() + 2)).all()
        assert (b.grad == rounds * a.detach() + quarter).all()


def test_different_work_at_once():
    """Modes, hooks, checkpoints, views, higher derivatives and transforms side by side."""
    tp.manual_seed(0)
    x, w = integers(4, 3), integers(3, 3).requires_grad_()
    expected = x.sum(0)[:, None].expand(3, 3)  # of (x @ w).sum()

    def plain():
        for _ in range(ROUNDS):
            assert (tp.autograd.grad((x @ w).sum(), w)[0] == expected).all()

    def without_recording():
        for _ in range(ROUNDS):
            with tp.no_grad():
                y = x @ w
            assert not y.requires_grad
            assert (x @ w).requires_grad
            with tp.inference_mode():
                assert (x @ w).is_inference()

    def twice():
        for _ in range(ROUNDS):
            (first,) = tp.autograd.grad(((x @ w) ** 2).sum(), w, create_graph=True)
            (second,) = tp.autograd.grad(first.sum(), w)
            assert (second == 2 * (x.T @ x).sum(1, keepdim=True).expand(3, 3)).all()

    def with_checkpoint():
        for _ in range(ROUNDS):
            y = checkpoint(lambda v: (x @ v) * 2, w, use_reentrant=False)
            assert (tp.autograd.grad(y.sum(), w)[0] == 2 * expected).all()

    def with_hooks():
        for _ in range(ROUNDS):
            with tp.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
                y = w * w
            y.register_hook(lambda g: g * 3)
            assert (tp.autograd.grad(y.sum(), w)[0] == 6 * w).all()

    def transforms():
        for _ in range(ROUNDS // 4):
            found = tp.func.vmap(
                tp.func.grad(lambda row, v: (row @ v).sum(), argnums=1), (0, None)
            )(x, w.detach())
            assert (found.sum(0) == expected).all()
            _, tangent = tp.func.jvp(lambda v: x @ v, (w.detach(),), (tp.ones_like(w),))
            assert (tangent == x.sum(1, keepdim=True).expand(4, 3)).all()

    together(plain, without_recording, twice, with_checkpoint, with_hooks, transforms, plain, twice)
    assert tp.is_grad_enabled()


def test_in_place_writes_within_each_thread():
    w = integers(3, 3).requires_grad_()

    def work():
        for _ in range(ROUNDS):
            y = w * 1
            y[1:].mul_(2)
            y.t()[0].add_(w.sum())
            y.sum().backward()

    together(*[work] * THREADS)
    scale = tp.tensor([[1.0], [2.0], [2.0]], dtype=tp.float64) + 3
    assert (w.grad == THREADS * ROUNDS * scale.expand(3, 3)).all()


def test_one_graph_differentiated_by_all():
    x = integers(5).requires_grad_()
    total = ((x * x).cumsum(0) * x).sum()
    (expected,) = tp.autograd.grad(total, x, retain_graph=True)

    def work():
        for _ in range(ROUNDS):
            assert (tp.autograd.grad(total, x, retain_graph=True)[0] == expected).all()
            total.backward(retain_graph=True)

    together(*[work] * THREADS)
    assert (x.grad == THREADS * ROUNDS * expected).all()


def test_data_parallel_training_in_threads():
    """Each thread runs the same model on its part of a batch; gradients sum to those of the whole."""
    tp.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(tp.float64)
    with tp.no_grad():
        for parameter in model.parameters():
            parameter.copy_(integers(*parameter.shape))
    x = integers(THREADS * 5, 4)
    model(x).sum().backward()
    expected = [p.grad for p in model.parameters()]
    for _ in range(10):
        model.zero_grad()
        together(*[lambda part=part: model(part).sum().backward() for part in x.chunk(THREADS)])
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            assert (parameter.grad == gradient).all()


def test_a_hook_runs_in_the_thread_of_its_backward():
    w = tp.ones(2, requires_grad=True)
    seen = set()
    w.register_hook(lambda g: seen.add(threading.get_ident()))
    w.register_post_accumulate_grad_hook(lambda p: seen.add(threading.get_ident()))
    idents = []

    def work():
        idents.append(threading.get_ident())
        (w * 2).sum().backward()

    together(work, work)
    assert seen == set(idents)
    assert w.grad.tolist() == [4.0, 4.0]
