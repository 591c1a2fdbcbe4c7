"""A plugin's kernel under an op's public name is called where a gradient is recorded."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.plugin import Kernel, hookimpl

L = tp.linalg
ONES = tp.ones(3, 3)
CALLS = {
    "addcdiv": lambda x: tp.addcdiv(x, x, ONES + x, value=0.5),
    "addcmul": lambda x: tp.addcmul(x, x, ONES, value=2),
    "clamp": lambda x: tp.clamp(x, 0.25, 0.75),
    "div": lambda x: tp.div(x, ONES + 1),
    "hypot": lambda x: tp.hypot(x, ONES),
    "lerp": lambda x: tp.lerp(x, ONES, 0.25),
    "linalg_cholesky_ex": lambda x: L.cholesky(x @ x.T + tp.eye(3)),
    "linalg_det": L.det,
    "linalg_eigh": lambda x: L.eigh(x + x.T).eigenvalues,
    "linalg_inv_ex": L.inv,
    "linalg_lstsq": lambda x: L.lstsq(x + tp.eye(3), ONES).solution,
    "linalg_lu_factor_ex": lambda x: L.lu_factor(x)[0],
    "linalg_pinv": L.pinv,
    "linalg_qr": lambda x: L.qr(x).R,
    "linalg_slogdet": lambda x: L.slogdet(x).logabsdet,
    "linalg_solve_ex": lambda x: L.solve(x + tp.eye(3), ONES),
    "linalg_solve_triangular": lambda x: L.solve_triangular(x + tp.eye(3), ONES, upper=True),
    "linalg_svd": lambda x: L.svd(x).S,
    "linalg_svdvals": L.svdvals,
    "logaddexp": lambda x: tp.logaddexp(x, ONES),
    "matrix_exp": L.matrix_exp,
    "where": lambda x: tp.where(x > 0.5, x, 0.0),
}


def array_of(result):
    if isinstance(result, tuple):
        return tuple([array_of(item) for item in result])
    return np.asarray(result.detach().numpy())


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_of_its_name_is_called_in_training(name):
    op, calls = get_op(name), []

    class Stranger:
        name = "stranger"

        @hookimpl
        def tensorplug_kernels(self):
            return [Kernel(op.name, "cpu", kernel, priority=50)]

    def kernel(*arguments):
        calls.append(arguments)
        with tp.prefer("cpu_numpy"):
            if op.kind == "composite":
                values = [tp.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
                return array_of(op.decompose(tuple(values)))
            return below(*arguments)

    below = tp.explain(name).kernel.function if op.kind == "primitive" else None
    x = tp.rand(3, 3, generator=tp.Generator().manual_seed(3), requires_grad=True)
    (expected,) = tp.autograd.grad(CALLS[name](x).square().sum(), x)
    tp.plugins.register(Stranger())
    try:
        result = CALLS[name](x)
        assert calls
        assert tp.explain(name).kernel.plugin == "stranger"
        (found,) = tp.autograd.grad(result.square().sum(), x)
    finally:
        tp.plugins.unregister("stranger")
    tp.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
