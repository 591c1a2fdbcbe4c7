"""Programs that look at what no op tells, or change it: gradients, generators, defaults, errors.

Each program is a generator that gets what compiles functions, or leaves them as they are, and yields what
its caller sees.
"""

import math

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug.graph.capture import Recorder

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def is_leaf(wrap):
    f = wrap(lambda x: x * 2 if x.is_leaf else x * 3)
    a = tp.ones(2, requires_grad=True)
    for _ in range(2):
        yield (f(a))
        yield (f(a * 1))


@program
def grad_fn(wrap):
    f = wrap(lambda x: x * 2 if x.grad_fn is None else x * 3)
    a = tp.ones(2, requires_grad=True)
    for _ in range(2):
        yield (f(a))
        yield (f(a * 1))


@program
def grad_none(wrap):
    f = wrap(lambda x: x * 2 if x.grad is None else x * 3 + x.grad)
    a = tp.ones(2, requires_grad=True)
    for i in range(5):
        yield (f(a))
        a.grad = None if i % 2 else tp.full((2,), i + 1.0)


@program
def param_grad_read(wrap):
    m = nn.Linear(2, 2)
    f = wrap(lambda x: x if m.weight.grad is None else x * m.weight.grad.sum())
    for i in range(4):
        yield (f(tp.ones(2)))
        m.weight.grad = tp.full((2, 2), float(i))


@program
def version(wrap):
    f = wrap(lambda x: x * x._version)
    a = tp.ones(2)
    for _ in range(4):
        yield (f(a))
        a.add_(1)


@program
def offset(wrap):
    f = wrap(lambda x: x * x.storage_offset())
    a = tp.arange(8.0)
    for i in range(4):
        yield (f(a[i : i + 3]))


@program
def attribute(wrap):
    f = wrap(lambda x: x * getattr(x, "foo", 1))
    a = tp.ones(2)
    for i in range(4):
        yield (f(a))
        a.foo = i + 2.0


@program
def state_tensor_attribute(wrap):
    G = tp.ones(2)
    G.foo = 1
    f = wrap(lambda x: x * G.foo)
    a = tp.ones(2)
    for i in range(4):
        yield (f(a))
        G.foo = i + 2.0


@program
def stride_of_ones(wrap):
    f = wrap(lambda x: x * x.stride()[0])
    for t in (
        tp.ones(1, 3),
        tp.ones(3, 1).t(),
        tp.ones(1, 3),
        tp.ones(5, 3)[:1],
        tp.ones(1, 6)[:, ::2],
    ):
        yield (f(t))


@program
def neg_zero_item(wrap):
    f = wrap(lambda x, y: y * x.item())
    for v in (0.0, 0.0, -0.0, -0.0, 0.0):
        yield (f(tp.tensor(v), tp.ones(2)))


@program
def nan_item(wrap):
    f = wrap(lambda x, y: y * x.item())
    for v in (math.nan, math.nan, 1.0, math.nan):
        yield (f(tp.tensor(v), tp.ones(2)))


@program
def isinstance_param(wrap):
    f = wrap(lambda x: x * 2 if isinstance(x, nn.Parameter) else x * 3)
    for t in (
        tp.ones(2),
        tp.ones(2),
        nn.Parameter(tp.ones(2)),
        nn.Parameter(tp.ones(2)),
        tp.ones(2, requires_grad=True),
    ):
        yield (f(t).detach())


@program
def inner_inference(wrap):
    def p(x):
        with tp.inference_mode():
            return x * 2

    f = wrap(p)
    for _i in range(4):
        y = f(tp.ones(2))
        yield (y), y.is_inference()


@program
def inner_enable_grad(wrap):
    def p(x):
        with tp.enable_grad():
            y = x * 2
        return y, x * 3

    f = wrap(p)
    with tp.no_grad():
        for _i in range(4):
            y = f(tp.ones(2, requires_grad=True))
            yield (y)


@program
def inner_seed(wrap):
    def p(x):
        tp.manual_seed(3)
        return x + tp.randn(2)

    f = wrap(p)
    tp.manual_seed(0)
    for _i in range(4):
        yield (f(tp.ones(2)), tp.randn(1))


@program
def generator_arg(wrap):
    g = tp.Generator()
    g.manual_seed(5)
    f = wrap(lambda x: x + tp.randn(2, generator=g))
    tp.manual_seed(0)
    for _i in range(4):
        yield (f(tp.ones(2)), tp.randn(1))


@program
def rng_order(wrap):
    def p(x):
        a = tp.rand(3)
        b = x.new_empty(3).normal_()
        tp.randperm(4)
        c = tp.bernoulli(tp.full((3,), 0.5))
        d = F.dropout(x, 0.3)
        e = tp.randint(0, 9, (3,))
        q = tp.multinomial(tp.ones(5), 2)
        return a * b + c + d, e, q

    f = wrap(p)
    tp.manual_seed(0)
    for _i in range(4):
        yield (f(tp.ones(3)), tp.randn(1))


@program
def rng_unused(wrap):
    def p(x):
        tp.rand(3)
        x.clone().normal_()
        return x * 1

    f = wrap(p)
    tp.manual_seed(0)
    for _i in range(4):
        yield (f(tp.ones(3)), tp.randn(1))


@program
def rng_alike(wrap):
    def p(x):
        return F.dropout(x) + F.dropout(x) * 2, tp.rand_like(x), tp.rand_like(x)

    f = wrap(p)
    tp.manual_seed(0)
    for _i in range(4):
        x = tp.ones(30, requires_grad=True)
        r = f(x)
        r[0].sum().backward()
        yield (r, x.grad, tp.randn(1))


@program
def fork(wrap):
    def p(x):
        with tp.random.fork_rng():
            return x + tp.rand(2)

    f = wrap(p)
    tp.manual_seed(0)
    for _i in range(4):
        yield (f(tp.ones(2)), tp.randn(1))


@program
def rng_state(wrap):
    def p(x):
        s = tp.get_rng_state()
        y = x + tp.rand(2)
        tp.set_rng_state(s)
        return y

    f = wrap(p)
    tp.manual_seed(0)
    for _i in range(4):
        yield (f(tp.ones(2)), tp.randn(1))


@program
def inner_default_dtype(wrap):
    def p(x):
        tp.set_default_dtype(tp.float64)
        return tp.ones(2) * x

    f = wrap(p)
    try:
        for _ in range(3):
            yield (f(tp.ones(2))), str(tp.get_default_dtype())
            tp.set_default_dtype(tp.float32)
    finally:
        tp.set_default_dtype(tp.float32)


@program
def default_dtype_inside_put_back(wrap):
    def p(x):
        tp.set_default_dtype(tp.float64)
        try:
            y = tp.ones(2)
        finally:
            tp.set_default_dtype(tp.float32)
        return y * x.long()

    f = wrap(p)
    for _i in range(3):
        yield (f(tp.ones(2)))


@program
def returns_meta(wrap):
    def p(x):
        with tp.device("meta"):
            y = tp.ones(2)
        return y * 2

    f = wrap(p)
    for _i in range(3):
        yield f(tp.ones(2)).device.type


@program
def try_inside(wrap):
    def p(x):
        try:
            y = tp.linalg.cholesky(x)
        except Exception:
            y = x * 0
        return y + 1

    f = wrap(p)
    for v in (1.0, 1.0, -1.0, -1.0, 1.0):
        yield (f(tp.eye(2) * v))


@program
def kernel_exceptions(wrap):
    def p(x, i):
        x.add_(1)
        return x[i]

    f = wrap(p)
    for i in (0, 1, 9, 0):
        x = tp.ones(3)
        try:
            r = f(x, tp.tensor([i]))
        except IndexError:
            r = "err"
        yield (r, x)


@program
def optimizer_inside(wrap):
    m = nn.Linear(2, 2)
    tp.nn.init.ones_(m.weight)
    tp.nn.init.ones_(m.bias)
    o = tp.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)

    def p(x):
        o.zero_grad()
        y = m(x).square().sum()
        y.backward()
        o.step()
        return y.detach()

    f = wrap(p)
    for _i in range(5):
        yield (f(tp.ones(1, 2)), m.weight)


@program
def training_step(wrap):
    m = nn.Linear(2, 2)
    tp.nn.init.ones_(m.weight)
    tp.nn.init.ones_(m.bias)
    o = tp.optim.AdamW(m.parameters(), lr=0.1)

    def p(x):
        o.zero_grad()
        y = m(x).square().sum()
        y.backward()
        tp.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        return y.detach()

    f = wrap(p)
    for i in range(6):
        yield (f(tp.full((1, 2), i + 1.0)), m.weight)


@program
def step_compiled(wrap):
    w = nn.Parameter(tp.ones(3))
    w.grad = tp.ones(3)
    o = tp.optim.Adam([w], lr=0.1)
    f = wrap(lambda: o.step())
    for _i in range(5):
        f()
        yield (w)
        w.grad = w.grad * 2


@program
def inner_backward(wrap):
    w = tp.ones(2, requires_grad=True)

    def p(x):
        (x * w).sum().backward()
        return x * 2

    f = wrap(p)
    for i in range(4):
        yield (f(tp.full((2,), float(i))), w.grad)


@program
def checkpointed(wrap):
    from tensorplug.utils.checkpoint import checkpoint

    m = nn.Linear(2, 2)
    tp.nn.init.ones_(m.weight)
    tp.nn.init.ones_(m.bias)
    f = wrap(lambda x: checkpoint(lambda y: F.dropout(m(y)), x, use_reentrant=False).sum())
    tp.manual_seed(0)
    for v in (1.0, 1.0, -1.0):
        m.zero_grad()
        y = f(tp.full((2, 2), v))
        y.backward()
        yield (y, m.weight.grad)


@program
def clips(wrap):
    m = nn.Linear(2, 2)
    tp.nn.init.ones_(m.weight)
    tp.nn.init.ones_(m.bias)

    def p():
        return tp.nn.utils.clip_grad_norm_(m.parameters(), 0.5)

    f = wrap(p)
    for i in range(4):
        m.weight.grad = tp.full((2, 2), i + 1.0)
        m.bias.grad = tp.ones(2)
        r = f()
        yield (r, m.weight.grad)


@program
def lazy_cache(wrap):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = None

        def forward(self, x):
            if self.cache is None:
                self.cache = tp.arange(3.0)
            return x + self.cache

    m = M()
    f = wrap(m)
    for i in range(6):
        yield (f(tp.full((3,), float(i))))
        if i == 3:
            m.cache = tp.zeros(3)
        if i == 4:
            m.cache.add_(7)


@pytest.mark.filterwarnings("ignore:.*was resized:UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, alike):
    alike(PROGRAMS[name])


def test_a_planted_fault_is_found(alike, monkeypatch):
    monkeypatch.setattr(Recorder, "on_opaque", lambda self, what: None)
    with pytest.raises(AssertionError):
        alike(PROGRAMS["inner_seed"])
