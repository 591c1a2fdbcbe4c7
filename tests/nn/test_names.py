"""Every public name of torch.nn and torch.optim is here, or in a table with the reason why not."""

import importlib
import inspect
import types

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the names are torch's")

MODULES = [
    "nn",
    "nn.functional",
    "nn.grad",
    "nn.init",
    "nn.utils",
    "nn.utils.rnn",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.stateless",
    "nn.utils.fusion",
    "nn.attention",
    "nn.parallel",
    "nn.modules",
    "nn.parameter",
    "optim",
    "optim.optimizer",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "amp",
]

QUANTIZED = "there are no quantized tensors"
COMPILED = "for torch's compiler, or its code generators"
PROTOTYPE = "a prototype of torch that may still change"
MANY_DEVICES = "needs several devices or processes"

MISSING = {
    "nn.Container": "deprecated in torch since 0.4: Module",
    "nn.LinearCrossEntropyLoss": PROTOTYPE,
    "nn.LinearCrossEntropyOptions": PROTOTYPE,
    "nn.common_types": "types that torch's own files share",
    "nn.factory_kwargs": "a helper of torch's own files",
    "nn.intrinsic": QUANTIZED,
    "nn.qat": QUANTIZED,
    "nn.quantizable": QUANTIZED,
    "nn.quantized": QUANTIZED,
    "nn.functional.ScalingType": PROTOTYPE,
    "nn.functional.SwizzleType": PROTOTYPE,
    "nn.functional.assert_int_or_pair": COMPILED,
    "nn.functional.boolean_dispatch": COMPILED,
    "nn.functional.scaled_grouped_mm": PROTOTYPE,
    "nn.functional.scaled_mm": PROTOTYPE,
    "nn.attention.WARN_FOR_UNFUSED_KERNELS": "a switch of torch's own kernels",
    "nn.attention.activate_flash_attention_impl": "kernels are chosen by plugins' priorities",
    "nn.attention.current_flash_attention_impl": "kernels are chosen by plugins' priorities",
    "nn.attention.list_flash_attention_impls": "kernels are chosen by plugins' priorities",
    "nn.attention.register_flash_attention_impl": "kernels are registered by plugins",
    "nn.attention.restore_flash_attention_impl": "kernels are chosen by plugins' priorities",
    "nn.parallel.gather": MANY_DEVICES,
    "nn.parallel.parallel_apply": MANY_DEVICES,
    "nn.parallel.replicate": MANY_DEVICES,
    "nn.parallel.scatter": MANY_DEVICES,
    "nn.modules.Container": "deprecated in torch since 0.4: Module",
    "nn.modules.LinearCrossEntropyLoss": PROTOTYPE,
    "nn.modules.LinearCrossEntropyOptions": PROTOTYPE,
    "nn.parameter.UninitializedTensorMixin": "a helper of torch's own files",
}


def place(path, library):
    """Return a module of either library by its dotted path."""
    try:
        return importlib.import_module(f"{library.__name__}.{path}")
    except ModuleNotFoundError:
        return None


def public(module):
    """Return the names that a module of torch shows as its own."""
    listed = set(getattr(module, "__all__", ()))
    if module.__name__ == "torch.nn.functional":
        listed = set()  # it lists a few only
    if listed:
        return sorted(listed)
    found = []
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith(module.__name__):
                found.append(name)
        elif inspect.isbuiltin(value):
            if not name.startswith("has_torch_function"):  # torch's own dispatch
                found.append(name)
        elif (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith(
            ("torch.nn", "torch.optim")
        ):
            found.append(name)
    return sorted(found)


@pytest.mark.parametrize("path", MODULES)
def test_names_are_there(path):
    theirs, ours = place(path, torch), place(path, tp)
    names = public(theirs)
    assert names
    assert ours is not None
    absent = [f"{path}.{name}" for name in names if not hasattr(ours, name)]
    assert [name for name in absent if name not in MISSING] == []


def test_the_table_names_what_is_missing():
    for name in MISSING:
        path, _, last = name.rpartition(".")
        assert not hasattr(place(path, tp), last), f"{name} is there by now"
        assert hasattr(place(path, torch), last), f"torch has no {name}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nn.LinearCrossEntropyLoss", "Linear and CrossEntropyLoss do the same"),
        ("nn.Nonsense", "no attribute 'Nonsense'$"),
        ("optim.Nonsense", "no attribute 'Nonsense'$"),
    ],
)
def test_a_missing_name_says_why(name, reason):
    module, _, attribute = name.partition(".")
    with pytest.raises(AttributeError, match=reason):
        getattr(getattr(tp, module), attribute)
