"""What has to hold in an environment with tensorplug and the packages beside; run as a script.

``python driver.py NAME`` runs the check of that name in a process of its own.
"""

import os
import sys
import traceback
import warnings

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def raised(function, *types):
    """The error that a call raises."""
    try:
        result = function()
    except types as error:
        return error
    raise AssertionError(f"nothing was raised, but {result!r} returned")


def loaded():
    """The plugin packages that were imported."""
    found = {name.partition(".")[0] for name in sys.modules}
    return {name for name in found if name.startswith(("tp_", "tensorplug_"))}


@check
def finding_plugins_imports_none():
    import tensorplug as tp

    assert tp.__file__.startswith(sys.prefix), tp.__file__
    assert loaded() == set(), loaded()
    installed = tp.plugins.installed()
    assert "cpu.numpy" in {plugin.name for plugin in installed if plugin.package == "tensorplug"}
    found = {plugin.name: plugin for plugin in installed if plugin.package != "tensorplug"}
    assert set(found) == {
        "cpu.override",
        "cpu.nonsense",
        "extension.new_op",
        "hologram.future",
        "shattered.only",
        "vault.broken",
        "vault.python",
    }, found
    assert found["vault.python"].label == "vault.python (tp-second-memory 1.0)"
    assert found["hologram.future"].api_version == "2"
    tp.device("vault")
    assert loaded() == set(), loaded()


@check
def a_device_loads_its_own_plugins_only():
    import tensorplug as tp

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        tp.zeros(2)
        assert loaded() == {"tensorplug_cpu_numpy", "tp_override", "tp_nonsense"}, loaded()
        tp.zeros(2, device="vault")
    assert loaded() >= {"tp_second_memory", "tp_broken"}, loaded()
    assert not loaded() & {"tp_new_op", "tp_future"}, loaded()


@check
def broken_plugins_are_set_aside_with_one_warning_each():
    import tensorplug as tp

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            (tp.ones(2) * 3 + 1).sum()
            tp.ones(2, device="vault") + 1
            for device in ("shattered", "hologram"):
                raised(lambda device=device: tp.zeros(1, device=device), RuntimeError)
    texts = sorted(str(warning.message) for warning in seen)
    assert len(texts) == 4, texts
    assert {warning.category.__name__ for warning in seen} == {"PluginWarning"}
    assert {warning.filename for warning in seen} == {__file__}
    nonsense, future, only, beside = texts
    for text, name in (
        (nonsense, "cpu.nonsense (tp-nonsense 0.2)"),
        (future, "hologram.future (tp-future 9.0)"),
        (only, "shattered.only (tp-broken 0.1)"),
        (beside, "vault.broken (tp-broken 0.1)"),
    ):
        assert text.startswith(f"tensorplug plugin {name} is not used: "), text
    assert "libshatter.so.3: cannot open" in only
    assert "`pip install --upgrade tp-broken`" in only
    assert "speaks plugin API v2, this tensorplug v1" in future
    assert "`pip install --upgrade tensorplug`" in future
    assert "(left, middle, right) does not fit the call (input, other)" in nonsense
    assert "nonsense (tp-nonsense 0.2)" in nonsense

    aside = {entry.found.name: entry for entry in tp.plugins.quarantined()}
    assert set(aside) == {"cpu.nonsense", "hologram.future", "shattered.only", "vault.broken"}
    assert "tp_broken/driver.py" in aside["shattered.only"].traceback.replace("\\", "/")
    assert "raise ImportError(" in aside["shattered.only"].traceback
    assert aside["hologram.future"].traceback == ""
    assert "tp_future" not in sys.modules


@check
def the_device_of_a_broken_plugin_says_why():
    warnings.simplefilter("ignore")
    import tensorplug as tp

    error = raised(lambda: tp.zeros(1, device="shattered"), RuntimeError)
    text = str(error)
    assert "'shattered' has no working plugin: shattered.only (tp-broken 0.1): ImportError" in text
    assert "pip" in text
    assert isinstance(error.__cause__, ImportError)
    frames = "".join(traceback.format_exception(error))
    assert "in load" in frames, frames

    error = raised(lambda: tp.zeros(1).to("hologram"), RuntimeError)
    assert "speaks plugin API v2, this tensorplug v1" in str(error)

    error = raised(lambda: tp.zeros(1, device="nowhere"), RuntimeError)
    assert "no plugin provides device 'nowhere'" in str(error)
    assert "vault" in str(error)


@check
def nothing_of_a_refused_plugin_is_kept():
    warnings.simplefilter("ignore")
    import tensorplug as tp

    assert (tp.full((2,), 3.0) * 2).tolist() == [6.0, 6.0]
    assert tp.plugins.record_of("nonsense") is None


@check
def a_kernel_is_overridden():
    warnings.simplefilter("ignore")
    import tensorplug as tp
    from tensorplug.core.dispatch.explain import explain

    x = tp.ones(3)
    x.exp()
    import tp_override

    assert tp_override.calls == [(3,)]
    x.to(tp.float64).exp()
    assert tp_override.calls == [(3,)]
    with tp.prefer("cpu_numpy"):
        x.exp()
    assert tp_override.calls == [(3,)]
    text = str(explain("exp"))
    assert text.startswith(
        "exp on cpu, float32: kernel of override (tp-override 2.1), priority 10,"
    )
    assert "tp_override/__init__.py:" in text.replace("\\", "/")
    assert "cpu_numpy (tensorplug" in text
    assert "takes any dtype, override names float32" in text


@check
def an_op_is_added_with_its_derivative():
    warnings.simplefilter("ignore")
    import math

    from tp_new_op import clip_smoothly, swish

    import tensorplug as tp

    x = tp.tensor([0.5, -4.0], requires_grad=True)
    y = clip_smoothly(x, 2.0)
    assert (
        y.tolist() == [2 * math.tanh(0.25), 2 * math.tanh(-2.0)]
        or abs(y[0].item() - 2 * math.tanh(0.25)) < 1e-6
    )
    y.sum().backward()
    expected = [1 - math.tanh(0.25) ** 2, 1 - math.tanh(-2.0) ** 2]
    assert all(abs(a - b) < 1e-6 for a, b in zip(x.grad.tolist(), expected, strict=True))
    assert tp.plugins.record_of("new_op").label == "new_op (tp-new-op 0.4)"
    assert y.grad_fn.name() == "ClipSmoothlyBackward0"
    assert clip_smoothly(tp.zeros(2, 3, device="meta"), 1.0).shape == (2, 3)
    assert (x.swish() - swish(x)).abs().sum().item() == 0

    # The one made of other ops runs on every device, the one with a kernel for "cpu" says what to
    # do.
    vault = x.detach().to("vault").requires_grad_()
    swish(vault).sum().backward()
    x.grad = None
    swish(x).sum().backward()
    assert (vault.grad.cpu() - x.grad).abs().max().item() < 1e-6
    error = raised(lambda: clip_smoothly(vault, 2.0), NotImplementedError)
    assert "'new_op.clip_smoothly' on device 'vault' with dtype float32" in str(error)
    assert "on 'cpu': new_op (tp-new-op 0.4)" in str(error)
    assert "`pip install --upgrade tp-second-memory`" in str(error)
    tp.set_fallback("allow")
    clip_smoothly(vault, 2.0).sum().backward()
    assert tp.fallback_counts()["new_op.clip_smoothly", "vault"].calls == 1


@check
def an_extension_tells_all_of_derivatives():
    """Reverse and forward rules, batching, and a derivative in place of core's."""
    warnings.simplefilter("ignore")
    from tp_new_op import calls, row_sums, swish, unfinished

    import tensorplug as tp

    x = tp.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=tp.float64, requires_grad=True)
    tp.plugins.load_all()
    # A derivative in one piece: one node, where the body has several.
    y = swish(x, 0.7)
    assert y.grad_fn.name() == "SwishBackward0"
    assert tp.autograd.gradcheck(swish, (x, 0.7))
    assert tp.autograd.gradgradcheck(swish, (x, 0.7))
    assert "swish gradient" in calls
    # One that replaces core's, as long as the package is there.
    assert tp.autograd.gradcheck(tp.square, (x,))
    assert "square gradient" in calls
    # Forward mode by its own rule, and batches at once.
    assert tp.autograd.gradcheck(row_sums, (x,), check_forward_ad=True, check_batched_grad=True)
    _, tangent = tp.func.jvp(row_sums, (x.detach(),), (tp.ones_like(x),))
    assert tangent.tolist() == [2.0, 2.0]
    calls.clear()
    assert tp.func.vmap(row_sums, in_dims=1)(x).tolist() == row_sums(x.t()).tolist()
    assert calls == ["row sums of 2"]
    jacobian = tp.func.jacrev(row_sums)(x.detach())
    assert jacobian.tolist() == tp.func.jacfwd(row_sums)(x.detach()).tolist()
    # One that was forgotten: fine, until a gradient is asked for.
    assert unfinished(x.detach()).tolist() == (x * 2).tolist()
    with tp.no_grad():
        unfinished(x)
    error = raised(lambda: unfinished(x), NotImplementedError)
    assert "op 'new_op.unfinished' has no derivative" in str(error)
    wanted = "new_op (tp-new-op 0.4), has to supply derivative('new_op.unfinished', ...)"
    assert wanted in str(error), error
    # Without the package core's own derivative is back.
    calls.clear()
    tp.plugins.unregister("new_op")
    tp.square(x).sum().backward()
    assert not calls


@check
def an_extension_is_found_by_its_ops_name():
    warnings.simplefilter("ignore")
    import tensorplug as tp
    from tensorplug.core.dispatch.explain import explain

    assert "tp_new_op" not in sys.modules
    assert explain("new_op.swish").way == "decomposition"
    assert tp.plugins.record_of("new_op") is not None


@check
def the_first_call_of_an_extension_registers_it():
    warnings.simplefilter("ignore")
    from tp_new_op import swish

    import tensorplug as tp

    assert tp.plugins.record_of("new_op") is None
    swish(tp.ones(2))
    assert tp.plugins.record_of("new_op") is not None


@check
def a_device_out_of_order_says_what_is_missing():
    warnings.simplefilter("ignore")
    os.environ["VAULT_SHUT"] = "1"
    import tensorplug as tp

    error = raised(lambda: tp.zeros(1).to("vault"), RuntimeError)
    assert "vault cannot be used: the vault is shut; unset VAULT_SHUT" in str(error)
    del os.environ["VAULT_SHUT"]
    assert tp.zeros(1).to("vault").device.type == "vault"


@check
def the_vault_is_a_memory_of_its_own():
    warnings.simplefilter("ignore")
    import tensorplug as tp

    x = tp.arange(6.0).to("vault").reshape(2, 3)
    from tp_second_memory.memory import VaultArray, allocated

    assert type(x._array) is VaultArray
    assert type(x._array.store.memory) is bytearray
    assert x.device == tp.device("vault", 0)
    before = allocated["stores"]
    view = x.t()[1:]
    assert allocated["stores"] == before
    view += 10
    assert x.tolist() == [[0.0, 11.0, 12.0], [3.0, 14.0, 15.0]]
    assert view.data_ptr() == x.data_ptr() + 4
    assert view.stride() == (1, 3)
    host = x.cpu()
    host.zero_()
    assert x.sum().item() == 55
    error = raised(lambda: x + tp.ones(2, 3), RuntimeError)
    assert "vault:0 and cpu" in str(error)
    error = raised(lambda: x.expand(2, 2, 3).zero_(), RuntimeError)
    assert "more than one element" in str(error)
    error = raised(lambda: x.to(tp.bfloat16), TypeError)
    assert "device vault:0 has no dtype bfloat16; it has bool, uint8, uint16" in str(error)
    error = raised(lambda: tp.zeros(2, dtype=tp.bfloat16, device="vault"), TypeError)
    assert "no dtype bfloat16" in str(error)
    assert (x * 1j).real.sum().item() == 0
    before = allocated["stores"]
    x = view = error = None  # the error's traceback has frames that hold x
    assert allocated["stores"] == before - 1


@check
def the_vault_draws_the_same_random_numbers():
    warnings.simplefilter("ignore")
    import tensorplug as tp

    drawn = []
    for device in ("cpu", "vault"):
        tp.manual_seed(3)
        drawn.append(
            [tp.randn(5, device=device).tolist(), tp.randint(9, (4,), device=device).tolist()]
        )
    assert drawn[0][1] == drawn[1][1]
    assert all(abs(a - b) < 1e-6 for a, b in zip(drawn[0][0], drawn[1][0], strict=True))


def same_losses(train, tolerance=1e-5):
    first, second = train("cpu"), train("vault")
    assert len(first) > 2
    assert first[-1] < first[0], first
    differences = [abs(a - b) for a, b in zip(first, second, strict=True)]
    assert max(differences) < tolerance, (first, second)
    print(first, second)


@check
def the_vault_trains_two_layers():
    warnings.simplefilter("ignore")
    import tensorplug as tp

    def train(device):
        tp.manual_seed(1)
        inputs, labels = tp.randn(8, 4).to(device), tp.randint(0, 3, (8,)).to(device)
        first = (tp.randn(4, 6) * 0.5).to(device).requires_grad_()
        bias = tp.zeros(6, device=device, requires_grad=True)
        second = (tp.randn(6, 3) * 0.5).to(device).requires_grad_()
        losses = []
        for _ in range(6):
            hidden = (inputs @ first + bias).relu()
            scores = (hidden @ second).log_softmax(-1)
            loss = -scores[tp.arange(8, device=device), labels].mean()
            loss.backward()
            with tp.no_grad():
                for weight in (first, bias, second):
                    weight -= 0.5 * weight.grad
                    weight.grad = None
            losses.append(loss.item())
        return losses

    same_losses(train)


@check
def the_vault_trains_a_convolution():
    """Two convolutions and a pooling, through the ops that nn registers."""
    warnings.simplefilter("ignore")
    import tensorplug as tp
    from tensorplug.nn.ops.convolution.convolution import convolution
    from tensorplug.nn.ops.pooling import max_pool

    def convolved(images, weight, bias):
        return convolution(images, weight, bias, (1, 1), (1, 1), (1, 1), 1).relu()

    def train(device):
        tp.manual_seed(1)
        images, labels = tp.randn(4, 1, 4, 4).to(device), tp.randint(0, 3, (4,)).to(device)
        shapes = [(2, 1, 3, 3), (2,), (3, 2, 3, 3), (3,), (12, 3)]
        weights = [(tp.randn(shape) * 0.4).to(device).requires_grad_() for shape in shapes]
        losses = []
        for _ in range(4):
            hidden = convolved(convolved(images, *weights[:2]), *weights[2:4])
            pooled, _ = max_pool(hidden, (2, 2), (2, 2), (0, 0), (1, 1), False)
            scores = (pooled.flatten(1) @ weights[4]).log_softmax(-1)
            loss = -scores[tp.arange(4, device=device), labels].mean()
            loss.backward()
            with tp.no_grad():
                for weight in weights:
                    weight -= 0.3 * weight.grad
                    weight.grad = None
            losses.append(loss.item())
        return losses

    same_losses(train)


@check
def the_vault_trains_the_demos_layers():
    """What the example's network is made of, as functions, with the optimizer of the example."""
    warnings.simplefilter("ignore")
    import tensorplug as tp
    import tensorplug.nn.functional as F

    def train(device):
        tp.manual_seed(1)
        images, labels = tp.randn(5, 1, 4, 4).to(device), tp.randint(0, 3, (5,)).to(device)
        shapes = [(2, 1, 3, 3), (2,), (3, 2, 3, 3), (3,), (3, 12), (3,)]
        weights = [(tp.randn(shape) * 0.4).to(device).requires_grad_() for shape in shapes]
        scales = [tp.ones(count, device=device, requires_grad=True) for count in (2, 3)]
        shifts = [tp.zeros(count, device=device, requires_grad=True) for count in (2, 3)]
        tp.manual_seed(2)  # each device draws from a stream of its own; dropout draws on this one
        optimizer = tp.optim.AdamW([*weights, *scales, *shifts], lr=0.05)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            hidden = images
            for n in range(2):
                hidden = F.conv2d(hidden, weights[2 * n], weights[2 * n + 1], padding=1)
                hidden = F.batch_norm(hidden, None, None, scales[n], shifts[n], True).relu()
            hidden = F.dropout(F.max_pool2d(hidden, 2).flatten(1), 0.3)
            loss = F.cross_entropy(F.linear(hidden, weights[4], weights[5]), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    same_losses(train)


@check
def the_vault_trains_the_demos_network():
    warnings.simplefilter("ignore")
    import tensorplug as tp
    import tensorplug.nn.functional as F
    from tensorplug import nn

    def train(device):
        tp.manual_seed(1)
        model = nn.Sequential(
            nn.Conv2d(1, 2, kernel_size=3, padding=1),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.Conv2d(2, 3, kernel_size=3, padding=1),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(3 * 2 * 2, 3),
        ).to(device)
        images, labels = tp.randn(5, 1, 4, 4).to(device), tp.randint(0, 3, (5,)).to(device)
        # Each device draws from a stream of its own; dropout draws on the model's.
        tp.manual_seed(2)
        optimizer = tp.optim.AdamW(model.parameters(), lr=0.05)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert {parameter.device.type for parameter in model.parameters()} == {device}
        return losses

    same_losses(train, 1e-4)


if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
