"""
Moving from torch
=================

What changes in a program (the import), what does not (nearly everything), how weights travel both
ways, and what to look at first where something differs.
"""

# sphinx_gallery_thumbnail_path = "images/dispatch.svg"
import io

import tensorplug as tp
from tensorplug import nn

tp.manual_seed(0)

# %%
# The import
# ----------
# ``import tensorplug as tp`` instead of ``import torch``. Names, signatures, defaults, promotion,
# broadcasting, views, in-place writes and the types of errors follow torch's documentation.

x = tp.ones(3, dtype=tp.int32)
print((x / 2).dtype, (x + 1.5).dtype, (x + tp.ones(3, dtype=tp.int64)).dtype)

base = tp.zeros(2, 3)
base[0].add_(1)  # a view: the base sees it
base.T[2] = 7
print(base)

# %%
# Errors have the types that programs expect, and say what was given.

try:
    tp.ones(2, 3) @ tp.ones(2, 3)
except RuntimeError as error:
    print("RuntimeError:", error)

# %%
# Programs that you cannot change
# -------------------------------
# A finder answers for ``import torch`` while it is installed: ``python -m tensorplug.compat
# program.py`` from the command line, or within a program:

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

net = nn.Linear(4, 2)
loss = F.mse_loss(net(torch.ones(3, 4)), torch.zeros(3, 2))
loss.backward()
print(type(net), net.weight.grad.shape)
"""

import sys  # noqa: E402

if "torch" not in sys.modules:
    with tp.compat.install():
        exec(PROGRAM)  # noqa: S102

# %%
# Weights
# -------
# ``tp.load`` reads what ``torch.save`` wrote, and the other way round; names of parameters are
# torch's. Files of safetensors, too. Nothing in a file is run.

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
file = io.BytesIO()
tp.save(model.state_dict(), file)
file.seek(0)
state = tp.load(file)
print(list(state))

other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
print(other.load_state_dict(state))
assert tp.equal(other(tp.ones(1, 4)), model(tp.ones(1, 4)))

# %%
# Devices
# -------
# A device is a plugin. ``tp.cuda.is_available()`` is a quiet False where none is installed, and
# ``to("cuda")`` says what to install.

device = "cuda" if tp.cuda.is_available() else "cpu"
print(model.to(device)(tp.ones(1, 4, device=device)))

# %%
# What differs
# ------------
# :doc:`/deviations` lists it all. First of all the random numbers: the same seed gives the same
# numbers on every device here, but not torch's. ``tp.compile`` captures programs, and
# ``tp.compiled()`` tells whether the hot path of the library itself was compiled.

one, two = (tp.Generator().manual_seed(5) for _ in range(2))
assert tp.equal(tp.rand(3, generator=one), tp.rand(3, generator=two))
print(tp.compiled() in (True, False))

# %%
# Looking for a difference
# ------------------------
# ``tp.explain`` names the kernel behind an op, and ``tp.prefer`` takes another one: if the readable
# definition in ``cpu_numpy`` agrees, the faster kernel is not to blame.

x = tp.randn(64, 64)
with tp.prefer("cpu_numpy"):
    expected = x.softmax(-1)
assert tp.allclose(x.softmax(-1), expected, atol=1e-6)
