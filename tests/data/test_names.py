"""Torch's names for data are ours, or there is a reason."""

import inspect

import pytest

from tensorplug import data

torch_data = pytest.importorskip("torch.utils.data", reason="torch's names are compared")

PIPES = "data pipes, which torch has deprecated"
ABSENT = {
    **dict.fromkeys(
        (
            "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation",
            "functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic",
            "runtime_validation", "runtime_validation_disabled",
        ),
        PIPES,
    ),
    "_DatasetKind": "private",
}  # fmt: skip


def test_every_name_is_here_or_has_a_reason():
    missing = {name for name in torch_data.__all__ if not hasattr(data, name)}
    assert missing == ABSENT.keys()


@pytest.mark.parametrize("name", sorted(set(torch_data.__all__) - ABSENT.keys()))
def test_the_parameters_are_torchs(name):
    theirs, ours = getattr(torch_data, name), getattr(data, name)
    if isinstance(theirs, type):
        theirs, ours = theirs.__init__, ours.__init__
    if theirs is not object.__init__:
        assert described(ours) == described(theirs)


def described(function):
    return [
        (parameter.name, parameter.kind, plain(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
    ]


def plain(default):
    """The default generator of `random_split` is an object of each library, here looked up late."""
    return None if type(default).__name__ == "Generator" else default
