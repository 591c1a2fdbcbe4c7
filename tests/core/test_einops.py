"""einops takes tensors, whichever of the two is imported first."""

import subprocess
import sys

import pytest

PROGRAM = """
x = tp.arange(24.0).reshape(2, 3, 4).requires_grad_()
rearranged = einops.rearrange(x, "b (c d) e -> d (b e) c", d=1)
assert tp.equal(rearranged, x.permute(0, 2, 1).reshape(1, 8, 3))
for name, expected in {"sum": x.sum((0, 2)), "mean": x.mean((0, 2)), "max": x.amax((0, 2)),
                       "min": x.amin((0, 2)), "prod": x.prod(2).prod(0)}.items():
    assert tp.equal(einops.reduce(x, "b c e -> c", name), expected), name
assert tp.equal(einops.reduce(x > 3, "b c e -> c", "any"), tp.tensor([True] * 3))
assert tp.equal(einops.repeat(x, "b c e -> b (c r) e", r=2), x.repeat_interleave(2, 1))
assert tp.equal(einops.einsum(x, x, "b c e, b d e -> b c d"), x @ x.mT)
packed, shapes = einops.pack([x, x[:, :, 0]], "b *")
assert packed.shape == (2, 15) and tp.equal(einops.unpack(packed, shapes, "b *")[0], x)
assert einops.parse_shape(x, "b _ e") == {"b": 2, "e": 4}
assert tp.equal(einops.rearrange([x, x], "n b c e -> b n c e")[:, 1], x)
einops.reduce(x, "b c e -> b", "sum").sum().backward()
assert tp.equal(x.grad, tp.ones_like(x))
assert einops.asnumpy(x).shape == (2, 3, 4)
"""


@pytest.mark.parametrize(
    "imports", ["import einops, tensorplug as tp", "import tensorplug as tp, einops"]
)
def test_einops_takes_tensors(imports):
    pytest.importorskip("einops")
    subprocess.run([sys.executable, "-W", "error", "-c", f"{imports}\n{PROGRAM}"], check=True)
