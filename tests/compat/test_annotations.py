"""``typing.get_type_hints`` of everything public, as data classes, checkers at run time and Fire use it."""

import importlib
import inspect
import typing

import pytest

import tensorplug as tp

NAMES = """
        amp autograd data distributions fft func futures hub linalg masked nn nn.functional nn.init nn.utils
        nn.utils.parametrizations nn.utils.parametrize nn.utils.rnn optim optim.lr_scheduler profiler random
        serialization signal.windows special utils.checkpoint
"""
MODULES = ["tensorplug", *(f"tensorplug.{name}" for name in NAMES.split())]


def annotated(module):
    """Yield the public classes and functions of a module, and the methods of those classes."""
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or not getattr(value, "__module__", "").startswith("tensorplug"):
            continue
        if inspect.isclass(value):
            yield f"{module.__name__}.{name}", value
            for method_name, method in vars(value).items():
                if inspect.isfunction(method):
                    yield f"{module.__name__}.{name}.{method_name}", method
        elif inspect.isroutine(value):
            yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize("module", MODULES)
def test_annotations_can_be_evaluated(module):
    found = list(annotated(importlib.import_module(module)))
    failed = []
    for name, value in found:
        try:
            typing.get_type_hints(value)
        except NameError as error:
            failed.append(f"{name}: {error}")
    assert found
    assert not failed


def test_a_subclass_of_module():
    class Net(tp.nn.Module):
        scale: tp.LongTensor | None
        size: int = 3

    hints = typing.get_type_hints(Net)
    assert hints["size"] is int
    assert typing.get_args(hints["scale"]) == (tp.LongTensor, type(None))
    assert hints["training"] is bool


@pytest.mark.parametrize("name", ["FloatTensor", "LongTensor", "BoolTensor"])
def test_legacy_types_in_unions(name):
    kind = getattr(tp, name)
    for union in (kind | None, None | kind, kind | tp.Tensor, tp.Tensor | kind):
        assert kind in typing.get_args(union)
    assert typing.get_args(kind | tp.Tensor | int) == (kind, tp.Tensor, int)
