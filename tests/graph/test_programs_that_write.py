"""Programs whose arguments, state and results share memory, or that write it.

Each program is a generator that gets what compiles functions, or leaves them as they are, and yields what
its caller sees.
"""

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug.graph import compiled

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def arg_is_state_first(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x, w: F.linear(x, w) + m(x).sum())
    x = tp.ones(2, 3)
    with tp.no_grad():
        yield (f(x, m.weight))
        yield (f(x, m.weight))
        w2 = tp.zeros(3, 3)
        yield (f(x, w2))
        yield (f(x, nn.Parameter(w2)))


@program
def arg_is_module_param_first(wrap):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(tp.ones(3))

        def forward(self, x):
            return x * self.w + x

    m = M()
    f = wrap(m)
    yield (f(m.w))
    yield (f(m.w))
    yield (f(nn.Parameter(tp.full((3,), 5.0))))
    yield (f(m.w))


@program
def arg_becomes_state(wrap):
    G = tp.arange(3.0)

    def p(t):
        t.add_(1)
        return G * 2 + t

    f = wrap(p)
    yield (f(tp.zeros(3)))
    yield (f(tp.zeros(3)))
    yield (f(G))
    yield (f(G), G)
    yield (f(G[:]), G)


@program
def arg_view_of_state(wrap):
    G = tp.arange(6.0).reshape(2, 3)

    def p(t):
        t.add_(1)
        return G.sum() + t

    f = wrap(p)
    yield (f(tp.zeros(3)))
    yield (f(tp.zeros(3)))
    yield (f(G[0]))
    yield (f(G[1]), G)


@program
def params_arg(wrap):
    m = nn.Linear(2, 2)
    tp.nn.init.ones_(m.weight)
    tp.nn.init.ones_(m.bias)
    f = wrap(lambda x, ps: m(x).sum() + sum([p.square().sum() for p in ps]))
    other = [tp.ones(2, 2), tp.zeros(2)]
    for _i in range(5):
        m.zero_grad()
        r = f(tp.ones(1, 2), list(m.parameters()))
        r.backward()
        yield (r, m.weight.grad)
        m.zero_grad()
        r = f(tp.ones(1, 2), other)
        r.backward()
        yield (r, m.weight.grad)


@program
def arg_and_detached(wrap):
    def p(x, y):
        x.mul_(2)
        return y + 1

    f = wrap(p)
    for _i in range(4):
        x = tp.ones(2)
        yield (f(x, tp.ones(2)))
        yield (f(x, x.detach()))
        yield (f(x, x.data))
        yield (f(x, x.view(2)))


@program
def two_results_views_alike(wrap):
    def p(x):
        a = x + 1
        b = x + 1
        return a.view(-1), b.view(-1)

    f = wrap(p)
    for _ in range(3):
        a, b = f(tp.zeros(2, 2))
        a.add_(1)
        yield (a, b)


@program
def grad_of_view_result(wrap):
    def p(x):
        y = x * 2
        return y, y[0], y.t()

    f = wrap(p)
    for i in range(4):
        x = tp.arange(4.0).reshape(2, 2).requires_grad_()
        a, b, c = f(x)
        b.mul_(3) if i % 2 else None
        (a.sum() + b.sum() + (c**2).sum()).backward()
        yield (a, b, c, x.grad)


@program
def write_arg_expanded(wrap):
    def p(x):
        x[0] = 5
        return x * 2

    f = wrap(p)
    for _i in range(3):
        b = tp.arange(3.0)
        x = b.expand(2, 3)
        try:
            r = f(x)
        except RuntimeError as e:
            r = type(e).__name__
        yield (x, b, r)


@program
def expanded_write(wrap):
    def p(x):
        y = x * 1
        v = y.expand(2, 3)
        v[0] = 5
        return y, v * 1

    f = wrap(p)
    for i in range(3):
        yield (f(tp.arange(3.0) + i))


@program
def out_arg(wrap):
    def p(x, o):
        return tp.add(x, 1, out=o)

    f = wrap(p)
    for _i in range(3):
        o = tp.zeros(3)
        r = f(tp.ones(3), o)
        yield (r, o), r is o
    for _i in range(3):
        o = tp.zeros(3, dtype=tp.float64)
        r = f(tp.ones(3), o)
        yield (r, o), r is o
    for _i in range(3):
        o = tp.zeros(0)
        r = f(tp.ones(3), o)
        yield (r, o), r is o


@program
def set_data(wrap):
    def p(x):
        x.data = x.data * 2
        return x + 1

    f = wrap(p)
    for _i in range(3):
        x = tp.ones(2)
        yield (f(x), x)


@program
def data_set_inside(wrap):
    def p(x):
        y = x * 2
        y.data = x * 5
        return y + 1

    f = wrap(p)
    for i in range(3):
        yield (f(tp.full((2,), float(i))))


@program
def detached_first(wrap):
    w = tp.ones(3, requires_grad=True)
    f = wrap(lambda x: (w.detach() * x + w * 2, w.data * x))
    for i in range(5):
        r = f(tp.full((3,), float(i)))
        r[0].sum().backward()
        yield (r, w.grad)
        if i == 2:
            w.data = tp.full((3,), 5.0)
        if i == 3:
            w.data.add_(1)


@program
def detached_only(wrap):
    w = tp.ones(3, requires_grad=True)
    f = wrap(lambda x: w.detach() * x)
    for g in (tp.enable_grad, tp.no_grad):
        with g():
            for i in range(5):
                yield (f(tp.full((3,), float(i))))
                if i == 2:
                    w.data = tp.full((3,), 5.0)
                if i == 3:
                    with tp.no_grad():
                        w.add_(1)


@program
def two_views_of_state(wrap):
    w = tp.arange(6.0)
    v = w[2:]
    u = w[:3]

    def p(x):
        u.add_(x)
        return v * 2

    f = wrap(p)
    for i in range(4):
        yield (f(tp.full((3,), float(i))), w)


@program
def turned_views(wrap):
    def p(x):
        y = x * 1
        v = y[0]
        v.unsqueeze_(0)
        v.add_(1)
        y.t_()
        y.mul_(v.sum())
        return y, v

    f = wrap(p)
    for i in range(3):
        yield (f(tp.arange(4.0).reshape(2, 2) + i))


@program
def unbind_written(wrap):
    def p(x):
        y = x * 1
        a, b = y[0], y[1]
        a.mul_(2)
        y.add_(1)
        b.copy_(a)
        c = y[:, :1]
        c.zero_()
        return y, a * 1

    f = wrap(p)
    for i in range(3):
        x = (tp.arange(4.0).reshape(2, 2) + i).requires_grad_()
        r = f(x)
        sum([t.sum() for t in r]).backward()
        yield (r, x.grad)


@program
def writes_views(wrap):
    def p(x, y):
        v = x[1:]
        w = x.t()
        v.mul_(2)
        w[0].add_(y)
        x[x > 3] = 0
        v[0] = w[:, 1]
        return x.clone(), v * 1

    f = wrap(p)
    for i in range(4):
        x = tp.arange(9.0).reshape(3, 3) + i
        y = tp.full((3,), float(i))
        r = f(x, y)
        yield (r, x, y)


@program
def written_leaf(wrap):
    w = tp.ones(3, requires_grad=True)

    def p(x):
        with tp.no_grad():
            w.mul_(2)
        return (w * x).sum()

    f = wrap(p)
    for i in range(4):
        r = f(tp.full((3,), float(i)))
        r.backward()
        yield (r, w, w.grad)


@program
def no_grad_write_of_made(wrap):
    def p(x):
        y = x * 3
        with tp.no_grad():
            y.mul_(2)
        return (y * y).sum()

    f = wrap(p)
    for i in range(4):
        x = tp.full((3,), float(i), requires_grad=True)
        r = f(x)
        r.backward()
        yield (r, x.grad)


@program
def arg_in_place_grad(wrap):
    def p(x, y):
        x.mul_(y)
        return (x * y).sum()

    f = wrap(p)
    for _i in range(4):
        w = tp.arange(1.0, 4.0).requires_grad_()
        x = w * 1
        y = tp.full((3,), 2.0, requires_grad=True)
        r = f(x, y)
        (r + x.sum()).backward()
        yield (r, x, w.grad, y.grad)


@program
def inplace_relu_arg(wrap):
    f = wrap(lambda x: F.relu(x, inplace=True) * 2)
    for i in range(4):
        x = tp.arange(3.0) - i
        y = f(x)
        yield (x, y)
        x = (tp.arange(3.0) - i).requires_grad_()
        z = x * 1
        y = f(z)
        y.sum().backward()
        yield (x.grad, z, y)


@program
def unused_dropout(wrap):
    def p(x):
        h = x.exp()
        F.dropout(h * 2)
        return h.sum()

    f = wrap(p)
    for i in range(4):
        x = tp.full((3,), float(i), requires_grad=True)
        r = f(x)
        r.backward()
        yield (r, x.grad, tp.rand(1))


@program
def two_results_backward_separately(wrap):
    f = wrap(lambda x: (x.exp(), x.sin()))
    for _i in range(4):
        x = tp.arange(4.0).requires_grad_()
        a, b = f(x)
        a.sum().backward()
        b.sum().backward()
        yield (x.grad)


@program
def ema(wrap):
    m = nn.Linear(2, 2)
    e = tp.zeros(2, 2)
    tp.nn.init.ones_(m.weight)
    tp.nn.init.ones_(m.bias)

    def p(x):
        with tp.no_grad():
            e.mul_(0.9).add_(m.weight, alpha=0.1)
        return m(x).sum()

    f = wrap(p)
    for _i in range(4):
        m.zero_grad()
        r = f(tp.ones(1, 2))
        r.backward()
        yield (r, e, m.weight.grad)


@program
def functional_bn(wrap):
    f = wrap(lambda x, m, v: F.batch_norm(x, m, v, training=True))
    m = tp.zeros(3)
    v = tp.ones(3)
    for _i in range(4):
        x = tp.arange(6.0).reshape(2, 3).requires_grad_()
        r = f(x, m, v)
        r.square().sum().backward()
        yield (r, m, v, x.grad)


@program
def constant_folded_return(wrap):
    C = tp.arange(6.0)
    f = wrap(lambda x: (C * 2, (C * 3).view(2, 3), x + 1))
    with tp.no_grad():
        for _s in range(4):
            r = f(tp.zeros(2))
            [t.add_(1) for t in r]
            yield (r, C)


@program
def zero_shapes(wrap):
    f = wrap(
        lambda x: (
            x.sum(),
            x * 2,
            x.cumsum(0),
            tp.cat([x, x]),
            (x + 1).reshape(-1),
            F.relu(x) @ tp.ones(x.shape[1], 2),
            x.prod(),
        )
    )
    for n in (0, 0, 3, 0, 1, 0):
        for m in (2, 0):
            x = tp.randn(n, m) if False else tp.full((n, m), 2.0).requires_grad_()
            r = f(x)
            sum([t.sum() for t in r]).backward()
            yield (r, x.grad)


@pytest.mark.filterwarnings("ignore:.*was resized:UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, alike):
    alike(PROGRAMS[name])


@pytest.mark.skipif(tp.compiled(), reason="compiled code does not look functions up in its module")
def test_a_planted_fault_is_found(alike, monkeypatch):
    monkeypatch.setattr(compiled, "memory_of", lambda *_: frozenset())
    with pytest.raises(AssertionError):
        alike(PROGRAMS["two_results_views_alike"])
