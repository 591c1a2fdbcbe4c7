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


def filled(dtype, number, batched):
    """Return a call that fills in vmap: the value, the tensor or both have samples."""

    def call(t):
        x = t.ones(2, 3, dtype=getattr(t, dtype))
        value = t.tensor([1, number])
        x, value = (x if "x" in batched else x[0]), (value if "v" in batched else value[1])
        dims = tuple(0 if name in batched else None for name in "xv")
        return t.func.vmap(lambda x, v: x.masked_fill(x > 0, v), in_dims=dims)(x, value)

    return call


for dtype in ("uint8", "int64", "float16", "float32", "bool"):
    for number in (3, 300, -1, 1e6, float("inf"), 2j):
        for batched in ("x", "v", "xv"):
            ROWS[f"transform: masked_fill of {dtype} by {number}, vmap over {batched}"] = Row(
                filled(dtype, number, batched)
            )
