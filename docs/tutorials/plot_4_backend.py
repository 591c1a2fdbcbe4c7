"""
Writing a backend
=================

A device of your own in one notebook: an array library becomes the device "abacus", trains a
network, gets a faster kernel and counts what it does. :doc:`/backends/first_backend` makes a
package of it, with tests.
"""

import collections

import matplotlib.pyplot as plt
import numpy as np

import tensorplug as tp
from tensorplug import nn
from tensorplug.plugin import array_api_backend, dtype_named

tp.manual_seed(0)

# %%
# A device in one call
# --------------------
# Any library that follows the array API standard will do: JAX, CuPy, dpctl… NumPy stands in for it
# here. In a package the object is named in an entry point; in a notebook it is registered.

plugin = array_api_backend(np, device_type="abacus")
tp.plugins.register(plugin)

x = tp.arange(6.0, device="abacus").reshape(2, 3)
print(x @ x.T)

# %%
# Who computes what
# -----------------
# Most ops are written in other ops, so the device has them all. ``explain`` tells how one is
# served.

print(tp.explain("softmax", device="abacus"))
print(tp.explain("matmul", device="abacus"))

# %%
# It trains
# ---------
# Autograd, modules and optimizers are not the device's business.


def train(device):
    """Learn a circle, and return the losses."""
    tp.manual_seed(0)
    points = (tp.rand(256, 2) * 2 - 1).to(device)
    inside = (points.norm(dim=1) < 0.7).long()
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)).to(device)
    optimizer = tp.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), inside)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


on_abacus, on_cpu = train("abacus"), train("cpu")
assert np.allclose(on_abacus, on_cpu, atol=1e-3)

# %%
# A kernel of your own
# --------------------
# Kernels get raw arrays and plain values. This one fuses the linear layer; its derivative stays
# what it was, since a derivative is written in ops.

calls = collections.Counter()


@plugin.kernel("linear", dtypes=[dtype_named("float32"), dtype_named("float64")])
def linear(input, weight, bias):
    """Multiply and add in one go."""
    calls["linear"] += 1
    result = input @ weight.T
    return result if bias is None else result + bias


tp.plugins.unregister(plugin.name)
tp.plugins.register(plugin)
print(tp.explain("linear", device="abacus"))
again = train("abacus")
print(dict(calls))

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(on_cpu, label="cpu", linewidth=4, alpha=0.4)
axes.plot(on_abacus, label="abacus", linestyle="--")
axes.plot(again, label="abacus, with a kernel of its own", linestyle=":")
axes.set(xlabel="step", ylabel="loss")
axes.legend()

# %%
# Where the time goes
# -------------------
# A profile names the plugin behind each kernel.

with tp.profiler.profile() as profile:
    train("abacus")
print(profile.key_averages().table(row_limit=8))

# %%
# Done
# ----
# Tables follow at once: without the plugin the device is gone.

tp.plugins.unregister(plugin.name)
