"""A backward pass runs on the queues of its forward ops, over stand-ins for queues of the CPU."""

import pytest

import tensorplug as tp
from tensorplug.core.device import queues


class Queues:
    """Queues of which one is the current one; `log` holds what happens to them."""

    def __init__(self):
        self.log = []
        self.usual, self.first, self.second = (Queue(self, name) for name in ("usual", "1", "2"))
        self.current = self.usual

    def __call__(self, index):
        return self.current


class Queue:
    def __init__(self, all_queues, name):
        self.all = all_queues
        self.name = name

    def __repr__(self):
        return self.name

    def wait_stream(self, other):
        self.all.log.append(f"{self} waits for {other}")

    def __enter__(self):
        self.before, self.all.current = self.all.current, self

    def __exit__(self, *exc):
        self.all.current = self.before


@pytest.fixture
def made(monkeypatch):
    made = Queues()
    runtime = tp.ones(1)._key.runtime
    monkeypatch.setattr(type(runtime), "current_queue", lambda self, index: made(index))
    queues.queues_differ(1)
    yield made
    queues.queues_differ(-1)
    monkeypatch.setattr(queues, "ever", False)


class Square(tp.autograd.Function):
    seen: list = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        Square.seen.append(repr(Square.made.current))
        return 2 * ctx.saved_tensors[0] * g


def test_each_op_on_its_queue(made):
    Square.seen, Square.made = [], made
    w = tp.ones(2, requires_grad=True)
    with made.first:
        a = Square.apply(w)
    with made.second:
        b = Square.apply(a)
    c = Square.apply(b).sum()
    c.backward()
    assert Square.seen == ["usual", "2", "1"]
    assert made.log == [
        "2 waits for usual", "1 waits for 2", "usual waits for 1",
        "2 waits for usual", "1 waits for usual",
    ]  # fmt: skip
    assert w.grad.tolist() == [8.0, 8.0]


def test_one_queue_waits_for_nothing(made):
    w = tp.ones(2, requires_grad=True)
    with made.first:
        (w * w).sum().backward()
    (w * w).sum().backward()
    assert made.log == []
    assert w.grad.tolist() == [4.0, 4.0]


def test_an_error_comes_back_to_the_queue_of_the_pass(made):
    class Fails(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no")

    w = tp.ones(2, requires_grad=True)
    with made.first:
        y = Fails.apply(w).sum()
    with pytest.raises(ValueError, match="no"):
        y.backward()
    assert made.current is made.usual
    assert made.log[-2:] == ["usual waits for 1", "1 waits for usual"]
