"""The gradient scaler does what torch's does, step by step."""

import pickle

import pytest

import tensorplug as tp

INF, NAN = float("inf"), float("nan")


def make(library, count=1, **options):
    x = library.tensor([2.0, -1.0], requires_grad=True)
    optimizers = [library.optim.SGD([x], lr=0.1) for _ in range(count)]
    return x, optimizers, library.amp.GradScaler("cpu", **options)


def course(library, factors):
    """Return scale, count and parameter after each step; a factor makes the gradient infinite."""
    x, (optimizer,), scaler = make(
        library, init_scale=8.0, growth_interval=2, growth_factor=4.0, backoff_factor=0.25
    )
    found = []
    for factor in factors:
        optimizer.zero_grad()
        scaler.scale((x * x).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append([scaler.get_scale(), scaler.state_dict()["_growth_tracker"], *x.tolist()])
    return found


def test_the_scale_takes_torchs_course():
    torch = pytest.importorskip("torch", reason="values are compared with torch's")
    factors = [1.0, 1.0, INF, 1.0, NAN, 0.5, 1.0, 1.0, 1.0]
    ours = course(tp, factors)
    assert ours == [pytest.approx(each) for each in course(torch, factors)]
    assert [row[0] for row in ours] == [8.0, 32.0, 8.0, 8.0, 2.0, 2.0, 8.0, 8.0, 32.0]


def test_gradients_are_unscaled_once():
    x, (optimizer,), scaler = make(tp, init_scale=16.0)
    scaler.scale((x * x).sum()).backward()
    assert x.grad.tolist() == [64.0, -32.0]
    scaler.unscale_(optimizer)
    assert x.grad.tolist() == [4.0, -2.0]
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    tp.nn.utils.clip_grad_norm_([x], 1.0)
    scaler.step(optimizer)
    assert x.tolist() == pytest.approx([2 - 0.1 * 4 / 20**0.5, -1 + 0.1 * 2 / 20**0.5])
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    scaler.update()


def test_each_optimizer_has_its_own_stage():
    x, y = tp.ones(1, requires_grad=True), tp.ones(1, requires_grad=True)
    first, second = tp.optim.SGD([x], lr=1.0), tp.optim.Adam([y], lr=1.0)
    scaler = tp.amp.GradScaler(init_scale=2.0)
    scaler.scale(x.sum() * INF + y.sum()).backward()
    scaler.unscale_(second)
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert x.tolist() == [1.0]  # skipped
    assert y.item() == pytest.approx(0.0, abs=1e-6)  # taken
    assert scaler.get_scale() == 1.0


def test_what_is_scaled():
    scaler = tp.amp.GradScaler(init_scale=2.0)
    one = tp.ones(1)
    scaled = scaler.scale([one, (one, one)])
    assert isinstance(scaled, list)
    assert isinstance(scaled[1], tuple)
    assert scaled[1][1].tolist() == [2.0]
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale("text")


def test_gradients_of_several_dtypes():
    parameters = [
        tp.ones(2, dtype=d, requires_grad=True) for d in (tp.float32, tp.float64, tp.bfloat16)
    ]
    optimizer = tp.optim.SGD(parameters, lr=0.5)
    scaler = tp.amp.GradScaler(init_scale=4.0)
    scaler.scale(sum(p.sum().double() for p in parameters)).backward()
    scaler.step(optimizer)
    scaler.update()
    assert [p.tolist() for p in parameters] == [[0.5, 0.5]] * 3


def test_gradients_of_float16_are_refused():
    x = tp.ones(2, dtype=tp.float16, requires_grad=True)
    scaler = tp.amp.GradScaler(init_scale=2.0)
    scaler.scale(x.sum()).backward()
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.step(tp.optim.SGD([x]))


def test_errors_of_the_order():
    x, (optimizer,), scaler = make(tp)
    for call in (lambda: scaler.step(optimizer), scaler.update, lambda: scaler.unscale_(optimizer)):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(x.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="prior to update"):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    for options in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError, match="factor must be"):
            tp.amp.GradScaler(**options)


def test_a_new_scale_is_taken():
    x, (optimizer,), scaler = make(tp)
    scaler.scale(x.sum()).backward()
    scaler.step(optimizer)
    scaler.update(4.0)
    assert scaler.get_scale() == 4.0
    scaler.update(tp.tensor([8.0]))
    assert scaler.get_scale() == 8.0
    with pytest.raises(AssertionError, match="1-element"):
        scaler.update(tp.ones(2))


def test_switched_off_it_passes_everything_on():
    x, (optimizer,), scaler = make(tp, enabled=False)
    loss = x.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert x.tolist() == pytest.approx([1.9, -1.1])
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    with pytest.warns(UserWarning, match="GradScaler is off"):
        assert not tp.amp.GradScaler("cuda").is_enabled()


def test_state_goes_to_torch_and_back():
    torch = pytest.importorskip("torch", reason="state is exchanged with torch")
    _, _, ours = make(tp, init_scale=4.0, growth_interval=3)
    _, _, theirs = make(torch, init_scale=64.0, growth_factor=3.0)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    saved = theirs.state_dict()
    theirs.load_state_dict(ours.state_dict())
    ours.scale(tp.ones(1))
    ours.load_state_dict(saved)
    assert (ours.get_scale(), ours.get_growth_factor()) == (64.0, 3.0)
    assert (theirs.get_scale(), theirs.get_growth_interval()) == (4.0, 3)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        ours.load_state_dict({})


def test_pickling_keeps_scale_and_count():
    _, _, scaler = make(tp, init_scale=4.0)
    scaler.scale(tp.ones(1))
    copy = pickle.loads(pickle.dumps(scaler))
    assert copy.state_dict() == scaler.state_dict()


def test_setters():
    scaler = tp.amp.GradScaler()
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    assert scaler.state_dict() == {
        "scale": 65536.0,
        "growth_factor": 3.0,
        "backoff_factor": 0.1,
        "growth_interval": 7,
        "_growth_tracker": 0,
    }
    assert (scaler.get_backoff_factor(), scaler.get_growth_interval()) == (0.1, 7)


class Own(tp.optim.Optimizer):
    """Looks at scale and gradients itself, by torch's protocol."""

    def __init__(self, params):
        super().__init__(params, {})
        self._step_supports_amp_scaling = True
        self.seen = []

    def step(self, closure=None):
        self.seen.append((self.grad_scale, float(self.found_inf)))


class Older(Own):
    def step(self, closure=None, *, grad_scaler=None):
        self.seen.append((hasattr(self, "grad_scale"), grad_scaler))


@pytest.mark.parametrize("factor", [1.0, INF, NAN])
@pytest.mark.parametrize("unscaled", [False, True])
def test_an_optimizer_that_scales_itself_is_always_called(factor, unscaled):
    x = tp.tensor([2.0], requires_grad=True)
    optimizer, scaler = Own([x]), tp.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((x * factor).sum()).backward()
    if unscaled:
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    ((scale, found),) = optimizer.seen
    assert (scale is None) if unscaled else float(scale) == 8.0
    assert found == float(factor != 1.0)
    assert not hasattr(optimizer, "grad_scale")
    assert not hasattr(optimizer, "found_inf")
    assert x.grad.tolist() == pytest.approx([factor * (1 if unscaled else 8)], nan_ok=True)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == (8.0 if factor == 1.0 else 4.0)


def test_an_older_optimizer_is_handed_the_scaler():
    x = tp.tensor([2.0], requires_grad=True)
    optimizer, scaler = Older([x]), tp.amp.GradScaler("cpu")
    scaler.scale(x.sum()).backward()
    with pytest.warns(FutureWarning, match="passing itself"):
        scaler.step(optimizer)
    assert optimizer.seen == [(False, scaler)]


@pytest.mark.parametrize("places", [[[0, 2]], [[2, 2]]], ids=["once", "repeated"])
@pytest.mark.parametrize("last", [4.0, INF, NAN])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense parameter", "sparse parameter"])
def test_sparse_gradients_are_unscaled(places, last, sparse):
    dense = tp.ones(3)
    x = dense.to_sparse() if sparse and places == [[0, 2]] else dense.requires_grad_()
    gradient = tp.sparse_coo_tensor(places, [8.0, last], (3,))
    if x.is_sparse:
        gradient = tp.sparse_coo_tensor([[0, 1, 2]], [8.0, 0.0, last], (3,))
    x.grad = gradient.clone()
    optimizer, scaler = tp.optim.SGD([x], lr=0.1), tp.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(tp.ones(()))
    scaler.unscale_(optimizer)
    (found,) = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values()
    assert float(found) == float(last != 4.0)
    assert x.grad.to_dense().tolist() == pytest.approx(
        (gradient.to_dense() / 2).tolist(), nan_ok=True
    )


def test_what_adds_up_to_infinity_in_float16_is_found():
    x = tp.ones(3, dtype=tp.float16, requires_grad=True)
    x.grad = tp.sparse_coo_tensor([[1, 1]], tp.tensor([64000.0, 64000.0], dtype=tp.float16), (3,))
    optimizer, scaler = tp.optim.SGD([x], lr=0.1), tp.amp.GradScaler("cpu")
    (found,) = scaler._unscale_grads_(optimizer, tp.tensor(0.5), tp.tensor(0.0), True).values()
    assert float(found) == 1.0


def test_programs_replace_how_gradients_are_unscaled():
    x = tp.ones(2, dtype=tp.float16, requires_grad=True)
    optimizer, scaler = tp.optim.SGD([x], lr=1.0), tp.amp.GradScaler("cpu", init_scale=4.0)
    known = scaler._unscale_grads_
    scaler._unscale_grads_ = lambda optimizer, inverse, found, allow: known(
        optimizer, inverse, found, True
    )
    scaler.scale(x.sum()).backward()
    scaler.step(optimizer)
    assert x.tolist() == [0.0, 0.0]
