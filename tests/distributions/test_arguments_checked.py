"""What every distribution refuses, says of itself on its class, and computes once: against torch's."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import tensorplug as tp
import tensorplug.distributions as D
from tensorplug.distributions.utils import lazy_property

from .test_every_distribution import ARGUMENTS, arguments_of, both, made

torch = pytest.importorskip("torch", reason="torch is the reference")
T = torch.distributions
CLASSES = sorted({name.partition(" ")[0] for name in ARGUMENTS})


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the type of its error."""
    try:
        return call()
    except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_values_that_are_no_numbers_are_refused(name: str) -> None:
    """A sampled value has NaN put in its place; both have to find it, or neither."""
    found = []
    for one in both(name, arguments_of(name)):
        value = one.sample().double()
        found.append(outcome(lambda: one.log_prob(value * float("nan"))))  # noqa: B023
    assert (found[0] is ValueError) == (found[1] is ValueError), found


@pytest.mark.parametrize("name", CLASSES)
def test_classes_say_how_their_values_look(name: str) -> None:
    ours, theirs = getattr(D, name), getattr(T, name)
    for what in ("event_dim", "is_discrete"):
        said, wanted = (
            outcome(lambda: getattr(cls.support, what))  # noqa: B023
            for cls in (ours, theirs)
        )
        assert said == wanted, what
    if isinstance(theirs.has_rsample, bool):
        assert ours.has_rsample == theirs.has_rsample


NUMBERS = sorted(name for name in ARGUMENTS if not both(name, arguments_of(name))[1].event_shape)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("validate", [True, False])
def test_log_prob_of_a_number(name: str, validate: bool) -> None:
    found = []
    for one in both(name, arguments_of(name)):
        one._validate_args = validate
        found.append(outcome(lambda: one.log_prob(1)))  # noqa: B023
    if validate:
        assert (found[0] is ValueError) == (found[1] is ValueError), found
    if not isinstance(found[1], torch.Tensor):
        return  # what torch computes has to work; ours may take more
    assert tuple(found[0].shape) == tuple(found[1].shape)
    assert found[0].numpy() == pytest.approx(found[1].numpy(), rel=1e-6, nan_ok=True)


PARAMETERS = {
    (name, parameter)
    for name, cls in ((name, getattr(D, name)) for name in CLASSES)
    for parameter in inspect.signature(cls).parameters
    if isinstance(inspect.getattr_static(cls, parameter, None), lazy_property)
}


@pytest.mark.parametrize(("name", "parameter"), sorted(PARAMETERS))
def test_what_is_computed_once_keeps_its_gradient(name: str, parameter: str) -> None:
    """Attributes asked for first where nothing is recorded are those that later losses use."""
    arguments = arguments_of(name)
    plain = made(D, lambda a: tp.tensor(a, dtype=tp.float64), name, arguments)
    others = [key for cls_name, key in PARAMETERS if cls_name == name and key != parameter]
    given = getattr(plain, parameter).detach().requires_grad_()
    options = {
        key: getattr(plain, key)
        for key in inspect.signature(type(plain)).parameters
        if key not in (*others, parameter, "validate_args") and hasattr(plain, key)
    }
    asked = type(plain)(**options, **{parameter: given})
    with tp.no_grad():
        for other in others:
            getattr(asked, other)
    for other in others:
        assert getattr(asked, other).requires_grad, other


def test_a_class_without_constraints_or_support_is_warned_of() -> None:
    class Delta(D.Distribution):
        def log_prob(self, value: Any) -> Any:
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        delta = Delta(validate_args=True)
    with pytest.warns(UserWarning, match="does not define `support`"):
        delta.log_prob(tp.zeros(()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Delta(validate_args=False).log_prob(tp.zeros(()))


def test_support_is_described_by_the_base_class() -> None:
    for module in (D, T):
        found = module.Distribution.__dict__["support"]
        assert isinstance(found, property)
        assert found.__doc__
        with pytest.raises(NotImplementedError):
            module.Distribution(validate_args=False).support  # noqa: B018


class _Weighted(tp.nn.Module):
    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.weight = tp.nn.Parameter(tp.ones(2))


BASES: dict[type, tuple[Any, ...]] = {
    D.transforms.Transform: (1,),
    D.transforms.ExpTransform: (),
    D.transforms.AffineTransform: (0.0, 2.0),
    D.transforms.ComposeTransform: ([],),
    D.Distribution: ((2,), (), False),
    D.Normal: (0.0, 1.0),
    D.LogNormal: (0.0, 1.0),
    D.Independent: (D.Normal(tp.zeros(2), 1.0), 1),
    D.ConstraintRegistry: (),
    tp.utils.data.ConcatDataset: ([[1]],),
    tp.utils.data.ChainDataset: ([],),
}


@pytest.mark.parametrize("base", BASES)
def test_a_module_beside_a_base_is_made_too(base: Any) -> None:
    mixed = type("Mixed", (base, _Weighted), {})(*BASES[base])
    assert [name for name, _ in mixed.named_parameters()] == ["weight"]
    mixed.more = tp.nn.Linear(1, 1)
    assert len(mixed.state_dict()) == 3


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
@pytest.mark.filterwarnings("ignore:Singular sample detected")
def test_subclasses_with_an_init_expand_by_themselves(name: str) -> None:
    ours, theirs = both(name, arguments_of(name))
    for distribution in (ours, theirs):
        base = type(distribution)

        class Plain(base):  # type: ignore[misc, valid-type]
            arg_constraints: ClassVar[Any] = {}  # parameters of its own instead of the base's

            def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
                new = self._get_checked_instance(Plain, _instance)
                return super().expand(batch_shape, _instance=new)

        class Other(base):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                raise AssertionError("not called")

        shape = (3, *distribution.batch_shape)
        same = copy.copy(distribution)
        same.__class__ = Plain
        wide = same.expand(shape)
        assert type(wide) is Plain
        value = distribution.sample()
        if name != "GeneralizedPareto":  # torch's refuses float64
            assert tuple(wide.log_prob(value).shape) == shape
        if distribution is theirs and name == "VonMises":  # calls __init__ then
            continue
        same.__class__ = Other
        with pytest.raises(NotImplementedError, match="must also define a custom"):
            same.expand(shape)
