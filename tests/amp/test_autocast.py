"""The context: nesting, decorators, threads, the cache, errors; and a net that trains under it."""

import threading
import warnings

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.amp.layer import layer
from tensorplug.core.contexts import thread
from tensorplug.core.dispatch.state import dispatch_state


def product(dtype=tp.float32):
    return (tp.ones(2, 2, dtype=dtype) @ tp.ones(2, 2, dtype=dtype)).dtype


def test_it_is_off_before_and_after():
    assert dispatch_state.layers_active == 0
    with tp.autocast("cpu"):
        assert dispatch_state.layers_active == 1
        assert product() is tp.bfloat16
    assert product() is tp.float32
    assert dispatch_state.layers_active == 0  # since the first call after it
    assert tp.plugins.layers()["autocast"] is layer


def test_nested_contexts():
    with tp.autocast("cpu"):
        with tp.autocast("cpu", enabled=False):
            assert product() is tp.float32
            assert not tp.is_autocast_enabled("cpu")
            with tp.autocast("cpu", dtype=tp.float16):
                assert product() is tp.float16
                assert tp.get_autocast_dtype("cpu") is tp.float16
        assert product() is tp.bfloat16
        assert tp.is_autocast_enabled("cpu")
        assert tp.is_autocast_enabled()
    assert not tp.is_autocast_enabled()
    assert tp.get_autocast_dtype("cpu") is tp.bfloat16


def test_one_context_may_be_entered_twice():
    context = tp.amp.autocast(device_type="cpu", dtype=tp.float16)
    with context, context:
        assert product() is tp.float16
    assert product() is tp.float32


@pytest.mark.parametrize("flags", [{"enabled": "no"}, {"enabled": None}, {"cache_enabled": 0}])
def test_flags_are_bools(flags):
    with pytest.raises(TypeError, match="must be a bool"):
        tp.autocast("cpu", **flags)


def test_an_error_leaves_it():
    with pytest.raises(ZeroDivisionError), tp.autocast("cpu"):
        raise ZeroDivisionError
    assert product() is tp.float32
    assert dispatch_state.layers_active == 0


def test_an_error_in_an_op_leaves_the_layer_ready():
    with tp.autocast("cpu"):
        with pytest.raises(RuntimeError):
            tp.ones(2, 3) @ tp.ones(2, 3)
        assert product() is tp.bfloat16


def test_as_a_decorator():
    @tp.autocast("cpu")
    def double(x):
        """Return twice x."""
        return product(), x * 2

    assert double(3) == (tp.bfloat16, 6)
    assert double.__doc__ == "Return twice x."
    assert product() is tp.float32


def test_other_threads_are_left_alone():
    found = []
    with tp.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(product()))
        thread.start()
        thread.join()
    assert found == [tp.float32]


def test_in_place_and_out_are_left_alone():
    a, out = tp.ones(2, 2), tp.empty(2, 2)
    with tp.autocast("cpu"):
        assert tp.mm(a, a, out=out).dtype is tp.float32
        assert a.clone().addmm_(a, a).dtype is tp.float32


def test_other_device_types_are_left_alone():
    a = tp.ones(2, 2, device="meta")
    with tp.autocast("cpu"):
        assert (a @ a).dtype is tp.float32
    with tp.autocast("meta", dtype=tp.float16):
        assert (a @ a).dtype is tp.float16
        assert a.exp().dtype is tp.float32
        assert product() is tp.float32
        half = a.half()
        assert half.exp().dtype is tp.float32
        assert half.sum().dtype is tp.float32
        assert half.sum(dtype=tp.float16).dtype is tp.float16
        assert half.sin().dtype is tp.float16
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(half, half)


def test_the_cast_of_a_parameter_is_kept_until_the_outermost_end():
    weight = tp.ones(2, 2, requires_grad=True)
    x = tp.ones(2, 2)
    with tp.autocast("cpu"):
        first = x @ weight
        with tp.autocast("cpu"):
            x @ weight
        assert len(thread.autocast.cache) == 1
        with tp.no_grad():
            x @ weight  # not recorded: an entry of its own
            weight.mul_(3)
        assert len(thread.autocast.cache) == 2
        assert (x @ weight)[0, 0].item() == 6  # after a write it is converted anew
        with tp.no_grad():
            x @ x
    assert not thread.autocast.cache
    first.sum().backward()
    assert weight.grad.dtype is tp.float32


def test_without_a_cache():
    weight = tp.ones(2, 2, requires_grad=True)
    with tp.autocast("cpu", cache_enabled=False):
        assert not tp.is_autocast_cache_enabled()
        tp.ones(2, 2) @ weight
        assert not thread.autocast.cache
    assert tp.is_autocast_cache_enabled()


def test_bad_arguments():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tp.autocast(1)
    with pytest.raises(RuntimeError):
        tp.autocast("no such device!")
    with pytest.warns(UserWarning, match="no effect"):
        assert not tp.autocast("cuda")._enabled
    with pytest.warns(UserWarning, match="bfloat16 or float16"), tp.autocast("cpu", tp.float64):
        assert product() is tp.float32
    assert tp.amp.is_autocast_available("cpu")


def test_a_plugin_declares_the_policies_of_its_ops():
    from tensorplug.plugin import AutocastPolicy, RegistrationError, composite, hookimpl

    @composite(name="acme.twice", method=False)
    def twice(input):
        return input + input

    class Plugin:
        name = "acme"

        @hookimpl
        def tensorplug_ops(self):
            return [twice]

        @hookimpl
        def tensorplug_autocast(self):
            return [AutocastPolicy("acme.twice", "lower")]

    class Again:
        name = "again"

        @hookimpl
        def tensorplug_autocast(self):
            return [AutocastPolicy("matmul", "float32", "cpu")]

    class Malformed:
        name = "malformed"

        @hookimpl
        def tensorplug_autocast(self):
            return [AutocastPolicy("acme.twice", "higher")]

    tp.plugins.register(Plugin())
    try:
        with tp.autocast("cpu"):
            assert twice(tp.ones(2)).dtype is tp.bfloat16
    finally:
        tp.plugins.unregister("acme")
    for plugin, match in ((Again(), "already, from amp"), (Malformed(), "'higher'")):
        with pytest.raises(RegistrationError, match=match):
            tp.plugins.register(plugin)
    with tp.autocast("cpu"):
        assert product() is tp.bfloat16


# --- custom functions ---------------------------------------------------------------------------


@pytest.mark.parametrize("cast_inputs", [None, "float32"])
@pytest.mark.parametrize("on", [False, True])
def test_custom_functions_do_what_torchs_do(cast_inputs, on):
    torch = pytest.importorskip("torch", reason="dtypes are compared with torch's")

    def seen(library):
        found = []
        chosen = None if cast_inputs is None else getattr(library, cast_inputs)

        class Product(library.autograd.Function):
            @staticmethod
            @library.amp.custom_fwd(device_type="cpu", cast_inputs=chosen)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                found.extend([a.dtype, (a @ b).dtype, library.is_autocast_enabled("cpu")])
                return a @ b

            @staticmethod
            @library.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                found.extend([g.dtype, library.is_autocast_enabled("cpu")])
                return g @ b.to(g.dtype).T, a.to(g.dtype).T @ g

        a = library.ones(2, 2, requires_grad=True)
        with library.autocast("cpu", enabled=on):
            result = Product.apply(a.to(library.bfloat16) if on else a, a)
        result.float().sum().backward()
        return [str(each).rpartition(".")[2] for each in (*found, a.grad.dtype)]

    assert seen(tp) == seen(torch)


# --- training -----------------------------------------------------------------------------------


def copy_weights(ours, theirs):
    ours.load_state_dict(
        {key: tp.tensor(value.tolist()) for key, value in theirs.state_dict().items()}
    )


@pytest.mark.parametrize("low", ["bfloat16", "float16"])
def test_a_small_net_loses_what_torchs_does(low):
    torch = pytest.importorskip("torch", reason="losses are compared with torch's")
    torch.manual_seed(0)

    def net(library):
        module = library.nn
        return module.Sequential(
            module.Conv2d(1, 4, 3), module.BatchNorm2d(4), module.ReLU(), module.MaxPool2d(2),
            module.Flatten(), module.Linear(36, 16), module.LayerNorm(16), module.GELU(),
            module.Linear(16, 3),
        )  # fmt: skip

    def losses(library, model):
        optimizer = library.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler = library.amp.GradScaler("cpu", init_scale=1024.0)
        x = library.tensor(images).reshape(8, 1, 8, 8)
        y = library.tensor([0, 1, 2, 0, 1, 2, 0, 1])
        found = []
        for _ in range(10):
            optimizer.zero_grad()
            with library.autocast("cpu", dtype=getattr(library, low)):
                output = model(x)
                loss = library.nn.functional.cross_entropy(output, y)
            assert output.dtype == getattr(library, low)
            assert loss.dtype == library.float32
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            found.append(loss.item())
        assert all(p.dtype == library.float32 for p in model.parameters())
        return found

    images = torch.randn(8 * 64).tolist()
    theirs, ours = net(torch), net(tp)
    copy_weights(ours, theirs)
    expected = losses(torch, theirs)
    assert expected[-1] < expected[0] / 2
    # Rounded to 8 bits at every layer, in another order.
    assert losses(tp, ours) == pytest.approx(expected, rel=0.05, abs=0.02)


@pytest.mark.parametrize(
    ("name", "arguments", "shapes"),
    [
        ("RNN", (4, 4), [(3, 2, 4)]),
        ("GRU", (4, 4), [(3, 2, 4)]),
        ("LSTM", (4, 4), [(3, 2, 4)]),
        ("RNNCell", (4, 4), [(2, 4)]),
        ("LSTMCell", (4, 4), [(2, 4)]),
        ("GRUCell", (4, 4), [(2, 4)]),
        ("MultiheadAttention", (4, 2), [(3, 2, 4)] * 3),
        ("TransformerEncoderLayer", (4, 2, 8), [(3, 2, 4)]),
        ("TransformerDecoderLayer", (4, 2, 8), [(3, 2, 4)] * 2),
        ("Bilinear", (4, 4, 2), [(2, 4)] * 2),
        ("Embedding", (4, 4), [None]),
        ("InstanceNorm2d", (4,), [(2, 4, 3, 3)]),
        ("Upsample", (None, 2), [(2, 4, 3, 3)]),
        ("ReflectionPad2d", (1,), [(2, 4, 3, 3)]),
        ("PReLU", (), [(2, 4)]),
    ],
)
def test_modules_return_torchs_dtypes(name, arguments, shapes):
    torch = pytest.importorskip("torch", reason="dtypes are compared with torch's")

    def dtypes(library):
        module = getattr(library.nn, name)(*arguments)
        inputs = [
            library.tensor([0, 1]) if shape is None else library.ones(*shape) for shape in shapes
        ]
        with warnings.catch_warnings(), library.autocast("cpu"):
            warnings.simplefilter("ignore")
            result = module(*inputs)

        def flat(value):
            return (
                [each for item in value for each in flat(item)] if type(value) is tuple else [value]
            )

        return [str(each.dtype).rpartition(".")[2] for each in flat(result)]

    found = dtypes(tp)
    try:
        expected = dtypes(torch)
    except RuntimeError as error:
        if "could not create a primitive descriptor" not in str(error):
            raise
        pytest.skip("torch has no such kernel for this processor: it raises")
    assert found == expected


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_recurrent_networks_are_trained(name, dtype):
    tp.manual_seed(0)
    module, x = getattr(tp.nn, name)(6, 7), tp.randn(5, 4, 6)
    module(x)[0].square().sum().backward()
    expected = [p.grad for p in module.parameters()]
    module.zero_grad()
    with tp.autocast("cpu", dtype):
        output = module(x)[0]
    output.square().sum().backward()
    for parameter, right in zip(module.parameters(), expected, strict=True):
        tp.testing.assert_close(parameter.grad, right, rtol=0.1, atol=0.1)


def test_names_of_a_device_type():
    from tensorplug.cpu.amp import GradScaler, autocast

    with autocast():
        assert product() is tp.bfloat16
    with autocast(True, tp.float16):
        assert product() is tp.float16
    assert GradScaler(8.0).get_scale() == 8.0
    assert tp.cpu.amp.autocast is autocast
    assert issubclass(tp.cuda.amp.autocast, tp.autocast)
    with pytest.raises(AttributeError, match=r"tensorplug\.cuda\.amp"):
        _ = tp.cuda.amp.nosuch


def test_transforms_go_below_it():
    def f(x):
        with tp.autocast("cpu"):
            return (x @ x).float().sum()

    x = tp.ones(2, 2)
    assert tp.func.grad(f)(x).dtype is tp.float32
    assert tp.func.vmap(lambda row: row @ x)(tp.ones(3, 2)).dtype is tp.float32
    with tp.autocast("cpu"):
        assert tp.func.vmap(lambda row: row @ x)(tp.ones(3, 2)).dtype is tp.bfloat16


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_recurrent_layers_take_what_autocast_gave(kind):
    layer, x = getattr(tp.nn, kind)(4, 4), tp.randn(3, 2, 4)
    with tp.autocast("cpu", dtype=tp.bfloat16):
        y = layer(x.bfloat16())[0]
    assert y.dtype is tp.bfloat16
    assert tp.allclose(y.float(), layer(x)[0], atol=0.05)
    with pytest.raises(ValueError, match="does not match weight dtype"):
        layer(x.bfloat16())
