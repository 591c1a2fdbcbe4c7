"""
Autograd in depth
=================

From one gradient to Hessians, gradients of each sample, forward mode, formulas of your own, and how
memory is saved. :doc:`/autograd` is the reference of what is promised.
"""

import matplotlib.pyplot as plt

import tensorplug as tp
from tensorplug.func import grad, hessian, jacrev, jvp, vmap

tp.manual_seed(0)

# %%
# A graph is recorded
# -------------------
# Each op on a tensor that requires grad leaves a node, which holds what its formulas ask for by
# name.

x = tp.tensor([0.5, 1.0, 2.0], requires_grad=True)
y = (x.sin() * x).sum()
print(y.grad_fn.name(), [edge[0].name() for edge in y.grad_fn.next_functions])
y.backward()
print(x.grad)
print((x.cos() * x + x.sin()).detach())  # by hand

# %%
# The derivative of a derivative
# ------------------------------
# Formulas are ordinary ops, so gradients can be differentiated again, as often as you like.

points = tp.linspace(-4, 4, 200, requires_grad=True)
curves = [points.tanh()]
for _ in range(3):
    curves += tp.autograd.grad(curves[-1].sum(), points, create_graph=True)

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for order, curve in enumerate(curves):
    name = "tanh" + "'" * order
    axes.plot(points.detach().numpy(), curve.detach().numpy(), label=name)
axes.legend()
axes.grid(alpha=0.3)

# %%
# Transforms of functions
# -----------------------
# :mod:`tensorplug.func` works on functions instead of tensors, and nests in any order.


def loss(weights, row):
    """A scalar, for one sample."""
    return (row @ weights).sigmoid().log().neg()


weights, rows = tp.randn(3), tp.randn(5, 3)
per_sample = vmap(grad(loss), in_dims=(None, 0))(weights, rows)
print("a gradient per sample:", per_sample.shape)
together = grad(lambda w: vmap(loss, in_dims=(None, 0))(w, rows).sum())(weights)
assert tp.allclose(per_sample.sum(0), together, atol=1e-6)

curvature = hessian(loss)(weights, rows[0])
print("Hessian:\n", curvature)

# %%
# A product of the Hessian with a vector needs no Hessian: forward over reverse.

_, product = jvp(lambda w: grad(loss)(w, rows[0]), (weights,), (tp.ones(3),))
assert tp.allclose(product, curvature @ tp.ones(3), atol=1e-6)

# %%
# A valley, and two ways down
# ---------------------------
# Rosenbrock's function. Newton's method takes the Hessian and is there in a few steps; gradients
# alone take thousands.


def rosenbrock(p):
    """The famous valley; its minimum is at (1, 1)."""
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


newton = [tp.tensor([-1.2, 1.0], dtype=tp.float64)]
for _ in range(6):
    p = newton[-1]
    newton.append(p - tp.linalg.solve(hessian(rosenbrock)(p), grad(rosenbrock)(p)))
descent = [newton[0]]
for _ in range(300):
    descent.append(descent[-1] - 0.0015 * grad(rosenbrock)(descent[-1]))

grid_x, grid_y = tp.meshgrid(
    tp.linspace(-1.6, 1.6, 120), tp.linspace(-3.4, 1.6, 120), indexing="xy"
)
height = vmap(rosenbrock)(tp.stack([grid_x.flatten(), grid_y.flatten()], 1)).reshape(120, 120)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.contourf(grid_x.numpy(), grid_y.numpy(), height.log1p().numpy(), levels=25, cmap="Blues")
for name, path in {"Newton": newton, "gradient descent": descent}.items():
    xs, ys = tp.stack(path).T
    axes.plot(xs.numpy(), ys.numpy(), marker=".", label=f"{name}, {len(path) - 1} steps")
axes.plot(1, 1, "k*", markersize=12)
axes.legend()
print("Newton ends at", newton[-1])

# %%
# A formula of your own
# ---------------------
# A :class:`tensorplug.autograd.Function` says forward and backward itself: here a sign whose
# gradient passes straight through. ``gradcheck`` compares a formula with finite differences.


class StraightThrough(tp.autograd.Function):
    """sign(x) forward, the identity backward."""

    @staticmethod
    def forward(ctx, x):
        """Return the sign."""
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        """Return the gradient as it comes."""
        return g


z = tp.randn(4, requires_grad=True)
StraightThrough.apply(z).sum().backward()
print(z.grad)


def smooth(x):
    """Something to check."""
    return (x.square() + 1).log()


assert tp.autograd.gradcheck(smooth, tp.randn(4, dtype=tp.float64, requires_grad=True))

# %%
# Less memory
# -----------
# A checkpointed part keeps its inputs alone and computes the rest again in backward.

from tensorplug.utils.checkpoint import checkpoint  # noqa: E402

calls = []


def costly(x):
    """Count how often it runs."""
    calls.append(1)
    return x.exp().sin().exp()


a = tp.randn(3, requires_grad=True)
checkpoint(costly, a, use_reentrant=False).sum().backward()
print("calls:", len(calls))

# %%
# A Jacobian
# ----------
# Of all outputs with respect to all inputs, at once.

print(jacrev(lambda x: x.cumsum(0))(tp.ones(4)))
