"""``swap_tensors``: classes, values and whatever else two tensors have changes places."""

import weakref

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.dispatch import overrides


class Tagged(tp.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Tagged.calls += 1
        return super().__torch_function__(func, types, args, kwargs)


def test_classes_values_and_attributes_change_places():
    first, second = tp.ones(2).as_subclass(Tagged), tp.zeros(3, requires_grad=True)
    first.tag, second.note = "tag", "note"
    tp.utils.swap_tensors(first, second)
    assert type(first) is tp.Tensor
    assert type(second) is Tagged
    assert first.tolist() == [0, 0, 0]
    assert first.requires_grad
    assert first.note == "note"
    assert not second.requires_grad
    assert second.tag == "tag"
    assert not hasattr(second, "note")


class Slotted(tp.Tensor):
    __slots__ = ("tag",)


def test_slots_change_places_and_have_to_be_alike():
    first, second = tp.ones(2).as_subclass(Slotted), tp.zeros(3).as_subclass(Slotted)
    first.tag = "tag"
    tp.utils.swap_tensors(first, second)
    assert second.tag == "tag"
    assert not hasattr(first, "tag")
    plain = tp.ones(2)
    with pytest.raises(RuntimeError, match="different slots"):
        tp.utils.swap_tensors(second, plain)
    assert second.tolist() == [1, 1]


def test_calls_are_handed_to_the_class_that_a_tensor_has_now():
    first, second = tp.ones(2).as_subclass(Tagged), tp.zeros(2)
    tp.utils.swap_tensors(first, second)
    before = Tagged.calls
    assert type(tp.add(first, 1)) is tp.Tensor
    assert Tagged.calls == before
    assert type(tp.add(second, 1)) is Tagged
    assert Tagged.calls > before
    assert not overrides.notes_of(first)
    assert len(overrides.notes_of(second)) == 1
    tp.utils.swap_tensors(first, second)
    assert type(tp.add(first, 1)) is Tagged
    assert not overrides.notes_of(second)


def test_modules_see_what_their_parameters_have_become():
    layer = nn.Linear(2, 2)
    known = layer.weight
    tp.utils.swap_tensors(layer.weight, nn.Parameter(tp.full((3, 3), 7.0)))
    assert layer.weight is known
    assert layer.weight.shape == (3, 3)
    assert isinstance(layer.weight, nn.Parameter)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", [tp.Tensor, Tagged])
def test_what_is_referred_to_weakly_is_refused(kind, place):
    tensors = [tp.ones(2).as_subclass(kind), tp.zeros(2).as_subclass(kind)]
    reference = weakref.ref(tensors[place])
    with pytest.raises(RuntimeError, match=f"t{place + 1} because it has weakref"):
        tp.utils.swap_tensors(*tensors)
    assert reference() is tensors[place]
    assert tensors[0].tolist() == [1, 1]
