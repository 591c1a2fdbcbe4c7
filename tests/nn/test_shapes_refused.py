"""Masks, states and targets whose sizes do not fit are refused, with torch's exception type."""

import itertools

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

SIZES = [
    (),
    (1,),
    (2,),
    (5,),
    (2, 5),
    (1, 5),
    (2, 1),
    (1, 1),
    (3, 5),
    (3, 1),
    (1, 2, 5),
    (3, 2, 5),
    (2, 2, 5),
]


def outcome(library, call, *args):
    """Return the shape of what a call returns, or the type of its exception."""
    try:
        return tuple(call(library, *args).shape)
    except Exception as error:
        return type(error)


def same(call, *args):
    ours, theirs = outcome(tp, call, *args), outcome(torch, call, *args)
    if isinstance(theirs, type):
        assert isinstance(ours, type), (args, ours)
        assert ours in (theirs, RuntimeError, IndexError), args
    else:
        assert ours == theirs, args


@pytest.mark.parametrize("batch", [(), (1,), (2,), (1, 1), (2, 3)])
@pytest.mark.parametrize("options", [{}, {"dropout_p": 0.5}], ids=["plain", "dropout"])
@pytest.mark.parametrize("grad", [False, True])
def test_masks_of_attention(batch, options, grad):
    def call(library, size):
        query = library.ones(*batch, 2, 4).requires_grad_(grad)
        key = library.ones(*batch, 5, 4)
        mask = library.ones(size)
        return library.nn.functional.scaled_dot_product_attention(query, key, key, mask, **options)

    for size in [*SIZES, (*batch, 2, 5), (*batch, 1, 5), (7, *batch, 2, 5)]:
        ours = outcome(tp, call, size)
        theirs = outcome(torch, call, size)
        if (
            theirs is IndexError
        ):  # of masks that have not two dimensions, only beside a batch of heads
            continue
        if options and theirs != ours:  # what is made larger by a mask is refused with dropout, too
            assert ours is RuntimeError, size
            continue
        assert ours == theirs, size


STATES = [(), (2,), (1, 2), (3, 2), (2, 2)]


@pytest.mark.parametrize("size", [(3,), (1, 3), (2, 3)])
def test_states_of_cells(size):
    def lstm(library, hidden, cell):
        states = library.ones(hidden), library.ones(cell)
        return library.lstm_cell(
            library.ones(size), states, library.ones(8, 3), library.ones(8, 2)
        )[0]

    def gru(library, hidden):
        return library.gru_cell(
            library.ones(size), library.ones(hidden), library.ones(6, 3), library.ones(6, 2)
        )

    def modules(library, name, hidden):
        state = library.ones(hidden)
        cell = getattr(library.nn, name)(3, 2)
        found = cell(library.ones(size), (state, state) if name == "LSTMCell" else state)
        return found[0] if name == "LSTMCell" else found

    for hidden in STATES:
        same(gru, hidden)
        for name in ("RNNCell", "GRUCell", "LSTMCell"):
            if len(size) < len(hidden):  # torch computes with what lies behind the state in memory
                assert outcome(tp, modules, name, hidden) is RuntimeError
            else:
                same(modules, name, hidden)
    for hidden, cell in itertools.product(STATES, STATES):
        same(lstm, hidden, cell)


@pytest.mark.parametrize("lengths", [(1, 1), (2, 1), (0, 1), (0, 0), (2, 2)])
def test_targets_of_ctc_loss(lengths):
    def call(library, size):
        log_probs = library.zeros(5, 2, 4)
        targets = library.ones(size, dtype=library.int64)
        return library.nn.functional.ctc_loss(log_probs, targets, (5, 5), lengths)

    for size in [(0,), (1,), (2,), (3,), (4,), (5,), (2, 1), (2, 2), (2, 3), (1, 2), (3, 2)]:
        same(call, size)
