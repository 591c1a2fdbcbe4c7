"""Every operator of torch's database that takes positions, given in other dtypes, beside torch."""

import itertools
import warnings

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="what it takes is what is to be taken")
from benchmarks import database  # noqa: E402

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "bool", "float32")
SAMPLES, SHARES = 4, 32
#: What torch refuses and is taken here, as docs/deviations.md lists it.
TAKEN = {
    ("index_copy", "int32"),
    ("index_fill", "int32"),
    ("nn.functional.cross_entropy", "uint8"),
    ("nn.functional.ctc_loss", "bool"),
    ("nn.functional.linear_cross_entropy", "uint8"),
    ("nn.functional.multi_margin_loss", "int32"),
    ("nn.functional.multilabel_margin_loss", "int32"),
    ("nn.functional.nll_loss", "uint8"),
}
#: An argument that is not there here.
LEFT_OUT = "linear_cross_entropy (chunked"
OPERATORS = [one for one in database.operators(tp, torch)[0] if LEFT_OUT not in one.label]


def outcome(function, arguments):
    args, kwargs = arguments
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    return None


def with_positions(operator):
    """Return the arguments of samples with integers among them."""
    try:
        samples = database.samples(operator, torch, "")
    except Exception:  # the database has none of that dtype
        return []
    return [
        given
        for given in samples[:SAMPLES]
        if any(map(is_position, database.tensors(given, torch)))
    ]


def is_position(value):
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int64, torch.int32)


def difference(operator, given, name):
    """Return what both libraries say of positions of a dtype, None if that is the same."""
    dtype = getattr(torch, name)
    theirs = database.converted(
        given, lambda value: value.to(dtype) if is_position(value) else value
    )
    ours = database.converted(theirs, lambda value: database.to_ours(value, tp, torch))
    wanted, found = outcome(operator.theirs, theirs), outcome(operator.ours, ours)
    if wanted is None or found is None:
        alike = wanted is found or (found is None and (operator.label, name) in TAKEN)
    else:  # NotImplementedError is a RuntimeError
        alike = isinstance(wanted, type(found)) or isinstance(found, type(wanted))
    return None if alike else (operator.label, name, repr(found), repr(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_other_dtypes_are_taken_and_refused_as_torch_does(share):
    seen, differing = 0, []
    for operator in OPERATORS[share::SHARES]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for given, name in itertools.product(with_positions(operator), DTYPES):
                seen += 1
                differing.append(difference(operator, given, name))
    assert seen
    assert not list(filter(None, differing))
