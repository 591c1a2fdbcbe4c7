"""Models with sizes that depend on data: onnxruntime and the model that is read again, on other data."""

import numpy as np
import pytest
from programs_of_data_sizes import PROGRAMS, Program, matrices

import tensorplug as tp

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import op_samples

#: For which ONNX has nothing.
WITHOUT = {"unique_consecutive"}


@pytest.mark.parametrize("rows", [[6, 6, 6], [6, 4, 9, 2]], ids=["rows stay", "rows vary"])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WITHOUT])
def test_other_data_gives_other_sizes(name, rows):
    module = Program(PROGRAMS[name])
    sizes = None if rows[0] == rows[-1] else ({0: "rows"},)
    first, *others = matrices(0, 5, rows)
    model = tp.onnx.export(module, (first,), dynamic_shapes=sizes)
    again = tp.onnx.load(model)
    for x in (first, *others):
        wanted = tp.utils._pytree.tree_leaves(module(x))
        found = op_samples.run(model, [x])
        read = tp.utils._pytree.tree_leaves(again(x))
        for a, b, c in zip(found, wanted, read, strict=True):
            assert a.shape == tuple(b.shape) == tuple(c.shape)
            assert np.allclose(a, b, 1e-5, 1e-6)
            assert np.allclose(c, b, 1e-5, 1e-6)


def test_another_course_for_few_elements_is_told():
    def function(x):
        chosen = x[x > 0]
        return chosen.sum() if chosen.shape[0] else x.sum()

    with pytest.warns(UserWarning, match="does something else where a size .* is 0"):
        tp.onnx.export(Program(function), (tp.tensor([1.0, -1.0, 2.0]),))
