"""Functions of autograd.functional in a transformed one, whose derivative they must not cut off."""

from listed_rows import Row

ROWS = {}

TRANSFORMS = ("vmap", "grad", "jacrev", "jacfwd", "hessian")
PRODUCTS = ("vjp", "jvp", "vhp", "hvp")
BLOCKS = ("jacobian", "hessian")


def of_functional(transform, name, create_graph):
    """Return a call that transforms a function made of one of autograd.functional's."""

    def call(t):
        functional = getattr(t.autograd.functional, name)

        def f(x):
            vector = (t.ones(3),) if name in PRODUCTS and name != "vjp" else ()
            found = functional(lambda y: (y**3).sum(), x, *vector, create_graph=create_graph)
            return (found[1] if name in PRODUCTS else found).sum()

        return getattr(t.func, transform)(f)(
            t.arange(6.0).reshape(2, 3) if transform == "vmap" else t.ones(3)
        )

    return call


for transform in TRANSFORMS:
    for name in (*PRODUCTS, *BLOCKS):
        # With the graph more of them are computed here than in torch: as without the transform.
        for create_graph in (False, True)[: 2 if name in ("vjp", "jacobian") else 1]:
            ROWS[f"transform: {transform} of autograd.functional.{name}, {create_graph=}"] = Row(
                of_functional(transform, name, create_graph)
            )
