"""Exported programs with sizes that depend on data."""

import io
import os

import pytest
from programs_of_data_sizes import PROGRAMS, Program, drawn, matrices

import tensorplug as tp
from tensorplug import export
from tensorplug.graph import Uncapturable

FEW, MANY = 40, 2000


def travelled(program):
    file = io.BytesIO()
    export.save(program, file)
    return export.load(file).module()


def agree(ours, wanted):
    ours, wanted = (tp.utils._pytree.tree_leaves(tree) for tree in (ours, wanted))
    for a, b in zip(ours, wanted, strict=True):
        if isinstance(b, tp.Tensor):
            tp.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        else:
            assert a == b


def refused(program, module, x):
    """Return whether a program says that it is not for the sizes that a module comes to with an argument."""
    try:
        agree(program(x), module(x))
    except ValueError as error:
        if "does not take" not in str(error):
            raise
        return True
    return False


@pytest.mark.parametrize("rows", [[6, 6, 6], [6, 4, 9, 2]], ids=["rows stay", "rows vary"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_data_gives_other_sizes(name, rows):
    module = Program(PROGRAMS[name])
    dims = None if rows[0] == rows[-1] else ({0: export.Dim("rows")},)
    first, *others = matrices(0, 5, rows)
    program = travelled(export.export(module, (first,), dynamic_shapes=dims))
    agree(program(first), module(first))
    assert not any(refused(program, module, x) for x in others)


@pytest.mark.parametrize("part", range(4))
def test_drawn_programs(part):
    count = MANY if os.environ.get("TENSORPLUG_FUZZ") else FEW
    taken = asked = 0
    for seed in range(part, count, 4):
        module, names = drawn(seed)
        varies = seed % 8 > 3
        first, *others = matrices(seed, 3, [7, 5, 9] if varies else [7, 7, 7])
        dims = ({0: export.Dim("rows")},) if varies else None
        program = export.export(module, (first,), dynamic_shapes=dims).module()
        for x in (first, *others):
            asked += 1
            try:
                taken += not refused(program, module, x)
            except Exception as error:
                error.add_note(f"drawn({seed}): {names}")
                raise
    assert taken > 0.9 * asked


def test_a_course_for_few_elements_is_refused_of_a_program_for_more():
    """The module does something else where nothing is left; the program was captured for more."""

    def function(x):
        chosen = x[x > 0]
        return chosen.sum() if chosen.shape[0] else x.sum()

    program = export.export(Program(function), (tp.tensor([1.0, -1.0, 2.0]),))
    assert program.dims == {"u0": export.Dim("u0", min=1)}
    assert program.module()(tp.tensor([-1.0, 5.0, -1.0])).item() == 5
    with pytest.raises(ValueError, match=r"Dim\('u0', min=1\) does not take 0"):
        program.module()(-tp.ones(3))


def test_sizes_that_were_equal_have_to_stay_so():
    program = export.export(Program(lambda x: x[x > 0] + x[x < 0]), (tp.tensor([1.0, -1.0]),))
    assert program.module()(tp.tensor([-1.0, 5.0])).tolist() == [4.0]
    with pytest.raises(ValueError, match="a size of index_1 is 0, and u0 was to be 2"):
        program.module()(tp.tensor([3.0, 5.0]))


def test_a_mask_of_the_module_is_no_data():
    class Masked(tp.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", tp.tensor([True, False, True]))

        def forward(self, x):
            return x[self.mask].view(2)

    program = export.export(Masked(), (tp.ones(3),))
    assert program.dims == {}
    run = program.module()
    assert run(tp.arange(3.0)).tolist() == [0.0, 2.0]
    run.mask.fill_(True)
    with pytest.raises(RuntimeError, match=r"made a tensor of shape \(2,\)"):
        run(tp.arange(3.0))


def test_gradients_and_names():
    module = Program(lambda x: (x[x > 0] ** 2).sum())
    dims = ({0: export.Dim("u0")},)
    program = export.export(module, (tp.tensor([1.0, -1.0, 2.0]),), dynamic_shapes=dims)
    assert list(program.dims) == ["u0", "u0_"]
    x = tp.tensor([3.0, -1.0, 2.0, 1.0], requires_grad=True)
    program.module()(x).backward()
    assert x.grad.tolist() == [6.0, 0.0, 4.0, 2.0]


def test_numbers_that_are_read_stay_refused():
    with pytest.raises(Uncapturable, match="reads data"):
        export.export(Program(lambda x: x[: int(x.sum())]), (tp.ones(3),))
