"""Methods that take a list of ints take the ints one by one, too, where torch's do."""

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="its schemas say which methods take one list alone")

LISTS = ("List[int]", "Optional[List[int]]")


def methods():
    """Yield the methods whose only argument by position is a list of ints."""
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        places = [argument for argument in schema.arguments if not argument.kwarg_only]
        if (
            namespace == "aten"
            and len(places) == 2
            and str(places[0].type) == "Tensor"
            and places[0].name == "self"
            and str(places[1].type) in LISTS
            and not name.startswith("resize")  # what is new in memory was not written
            and hasattr(torch.Tensor, name)
            and hasattr(tp.Tensor, name)
        ):
            yield name


def outcome(library, name, arguments):
    """Return a result as nested lists, or None where the call is refused."""
    x = library.arange(24.0).reshape(1, 4, 1, 6)
    try:
        found = getattr(x, name)(*arguments)
    except (RuntimeError, TypeError, IndexError):
        return None
    parts = found if isinstance(found, (tuple, list)) else [found]
    # What was not written to has no values to compare.
    return [part.shape if "empty" in name else part.tolist() for part in parts]


@pytest.mark.parametrize("name", sorted(set(methods())))
@pytest.mark.parametrize(
    "ints",
    [(0, 2), (1, 3), (2, 1, 3, 0), (3, 4, 2, 6), (24,)],
    ids=lambda ints: "x".join(map(str, ints)),
)
def test_ints_one_by_one(name, ints):
    expected = outcome(torch, name, ints)
    if expected is not None:
        assert outcome(tp, name, ints) == expected
