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

    def record_event(self):
        self.all.log.append(f"mark on {self}")
        return f"mark {len(self.all.log)} on {self}"

    def wait_event(self, event):
        self.all.log.append(f"{self} waits for {event}")

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
        "mark on usual",  # the start
        "mark on usual", "2 waits for mark 1 on usual", "2 waits for mark 2 on usual",
        "mark on 2", "1 waits for mark 1 on usual", "1 waits for mark 5 on 2",
        "usual waits for 2", "usual waits for 1", "2 waits for usual", "1 waits for usual",
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


def test_branches_wait_for_each_other_where_they_meet_only(made):
    w = tp.ones(2, requires_grad=True)
    Square.seen, Square.made = [], made
    parts = []
    for queue in (made.first, made.second):
        with queue:
            parts.append(Square.apply(Square.apply(w * 2)))
    (parts[0] + parts[1]).sum().backward()
    assert Square.seen in (["1", "1", "2", "2"], ["2", "2", "1", "1"])
    first, second = Square.seen[0], Square.seen[-1]
    waiting = [line.split(" waits for mark ") for line in made.log if " waits for mark " in line]
    # Each branch for the start and the sum, the second one at its end for the first one's gradient of w.
    assert [name for name, _ in waiting] == [first, first, second, second, second]
    assert [mark.split(" on ")[1] for _, mark in waiting] == ["usual"] * 4 + [first]
    assert w.grad.tolist() == [2 * 4 * 8.0 * 2] * 2
