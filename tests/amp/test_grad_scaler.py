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
