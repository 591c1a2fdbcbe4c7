"""Random programs of views, writes in place, hooks and retain_grad, differentiated once and twice.

Each is compared with the same program without views and writes, where every write makes a new value, and
with torch where it is installed. ``make fuzz`` runs ``TENSORPLUG_FUZZ`` of them.
"""

import os
import random

import pytest

import tensorplug as tp
from tensorplug.autograd.graph import recorder, views
from tensorplug.testing.comparison import assert_close

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "300"))
SLICES = 6
STEPS = 14

UNARY = {
    "neg": lambda t: -t,
    "twice": lambda t: t * 2,
    "plus": lambda t: t + 1,
    "clone": lambda t: t.clone(),
    "square": lambda t: t * t,
    "tanh": lambda t: t.tanh(),
}
VIEWS = {
    "row": lambda t: t[0],
    "last": lambda t: t[..., -1],
    "part": lambda t: t[..., 1:],
    "turned": lambda t: t.T if t.ndim == 2 else t[::1],
    "deeper": lambda t: t.unsqueeze(0).squeeze(0),
}
# Of each write: the new value, and the write itself.
WRITES = {
    "add": (lambda t, o: t + o, lambda t, o: t.add_(o)),
    "scale": (lambda t, o: t * 3, lambda t, o: t.mul_(3)),
    "times": (lambda t, o: t * o, lambda t, o: t.mul_(o)),
    "copy": (lambda t, o: o + t * 0, lambda t, o: t.copy_(o)),
    "fill": (lambda t, o: t * 0 + 0.5, lambda t, o: t.fill_(0.5)),
    "relu": (lambda t, o: t.relu(), lambda t, o: t.relu_()),
    "divide": (lambda t, o: t / (o * o + 1), lambda t, o: t.div_(o * o + 1)),
}


# What saves its arguments is rarer: a later write would end the program.
UNARIES = [*UNARY, *["neg", "twice", "plus", "clone"] * 3]
WRITERS = [*WRITES, *["add", "scale", "copy", "fill"] * 3]


def program(seed, hooked_views=True):
    """Return the steps of a program.

    Hooks on views come after all writes: what is written through a view does not pass its old node in torch,
    and here it does. In torch, a hook on a view that changed may end the process.
    """
    source = random.Random(seed)
    steps = [("new", source.choice("xw"), source.choice(UNARIES)) for _ in range(2)]
    ranks = [2, 2]  # of each variable
    are_views = [False, False]
    for number in range(STEPS):
        late = number > STEPS * 2 // 3
        kind = source.choice(
            ("new", "view", "write", "write", "write", "retain", "retain", "hook", "read")
        )
        chosen = source.randrange(len(ranks))
        if kind == "new":
            steps.append(("unary", chosen, source.choice(UNARIES)))
            ranks.append(ranks[chosen])
            are_views.append(False)
        elif kind == "view":
            names = [name for name in VIEWS if ranks[chosen] == 2 or name in ("part", "deeper")]
            name = source.choice(names)
            steps.append(("view", chosen, name))
            ranks.append(ranks[chosen] - (name in ("row", "last")))
            are_views.append(True)
        elif kind == "write" and not late:
            steps.append(("write", chosen, source.choice(WRITERS), source.randrange(len(ranks))))
        elif kind == "retain":
            steps.append(("retain", chosen))
        elif kind == "hook" and ((late and hooked_views) or not are_views[chosen]):
            steps.append(("hook", chosen, source.choice((None, 2.0, -0.5))))
        else:
            steps.append(("read", chosen, source.uniform(0.5, 2.0)))
    return [*steps, *[("read", n, 1.0 + n) for n in range(len(ranks))]]


class Real:
    """Runs a program as it is written, with a module that has torch's interface."""

    def __init__(self, module):
        self.module = module
        self.variables = []

    def read(self, number):
        return self.variables[number]

    def new(self, value):
        self.variables.append(value)

    def view(self, number, name):
        self.variables.append(VIEWS[name](self.variables[number]))

    def write(self, number, name, other):
        WRITES[name][1](self.variables[number], other)


class Plain:
    """Runs a program without views and writes: a view is the positions that it shows of its base."""

    def __init__(self, module):
        self.module = module
        self.bases = []  # the present value of each
        self.variables = []  # (base, positions, base's value when it was read last, what was read)

    def read(self, number):
        base, positions, known, value = self.variables[number]
        if positions is None:
            return self.bases[base]
        if known is not self.bases[base]:
            value = self.bases[base].flatten()[positions]
            self.variables[number] = (base, positions, self.bases[base], value)
        return value

    def new(self, value):
        self.bases.append(value)
        self.variables.append((len(self.bases) - 1, None, None, None))

    def view(self, number, name):
        base, positions, _, _ = self.variables[number]
        value = self.read(number)
        own = self.module.arange(value.numel()).reshape(value.shape)
        if positions is None:
            positions = own
        places = VIEWS[name](own).clone()
        self.variables.append(
            (base, positions.flatten()[places], self.bases[base], value.flatten()[places])
        )

    def write(self, number, name, other):
        base, positions, _, _ = self.variables[number]
        value = WRITES[name][0](self.read(number), other)
        if positions is not None:
            whole = self.bases[base]
            value = whole.flatten().index_put((positions.flatten(),), value.flatten())
            value = value.reshape(whole.shape)
        self.bases[base] = value


def run(module, machine, steps):
    """Return all gradients of a program: leaves', retained and those that hooks see, then second ones."""
    leaves = {
        name: module.tensor(start, dtype=module.float64, requires_grad=True)
        for name, start in (
            ("x", [[0.1, -0.2, 0.3], [1.1, 0.7, -0.6]]),
            ("w", [[0.9, 0.4, -0.8], [-0.3, 0.5, 1.2]]),
        )
    }
    total = module.zeros((), dtype=module.float64)
    seen, retained = [], set()
    for step, (kind, *rest) in enumerate(steps):
        if kind == "new":
            machine.new(UNARY[rest[1]](leaves[rest[0]] * 1))
        elif kind == "unary":
            machine.new(UNARY[rest[1]](machine.read(rest[0])))
        elif kind == "view":
            machine.view(*rest)
        elif kind == "write":
            target, other = machine.read(rest[0]), machine.read(rest[2])
            machine.write(rest[0], rest[1], other if other.shape == target.shape else other.sum())
        elif kind == "retain":
            retained.add(rest[0])
            if isinstance(machine, Real):
                machine.read(rest[0]).retain_grad()
        elif kind == "hook":

            def hook(gradient, step=step, factor=rest[1]):
                seen.append((step, gradient.detach().clone()))
                return None if factor is None else gradient * factor

            machine.read(rest[0]).register_hook(hook)
        else:
            total = total + (machine.read(rest[0]) * rest[1]).sum()
    kept = {number: machine.read(number) for number in sorted(retained)}
    if not isinstance(machine, Real):
        for value in kept.values():
            value.retain_grad()
    total.backward(create_graph=True)
    first = [leaf.grad for leaf in leaves.values()]
    result = {f"grad {name}": leaf.grad for name, leaf in leaves.items()}
    result.update({f"retained {number}": value.grad for number, value in kept.items()})
    calls = {}
    for step, gradient in seen:
        calls.setdefault(step, []).append(gradient)
    result.update({f"hook {step}": sum(found) for step, found in calls.items()})
    result = {
        name: None if value is None else value.detach().clone() for name, value in result.items()
    }
    parts = [
        (gradient * (n + 1.5)).sum() for n, gradient in enumerate(first) if gradient is not None
    ]
    live = [part for part in parts if part.requires_grad]
    if live:
        found = module.autograd.grad(sum(live), list(leaves.values()), allow_unused=True)
        result.update({f"second {name}": value for name, value in zip(leaves, found, strict=True)})
    return result


def difference(expected, result, exact):
    """Return what of two runs differs; no gradient is as good as zeros, but for `exact` first ones."""
    for name in sorted({*expected, *result}):
        one, other = expected.get(name), result.get(name)
        if one is None and other is None:
            continue
        if exact and (one is None or other is None) and not name.startswith("second"):
            return f"{name}: {one} and {other}"
        one = [[0.0]] if one is None else one.tolist()
        other = [[0.0]] if other is None else other.tolist()
        a, b = tp.tensor(one, dtype=tp.float64), tp.tensor(other, dtype=tp.float64)
        if a.shape != b.shape:
            a, b = (t.abs().sum() if t.abs().sum() == 0 else t for t in (a, b))
        try:
            assert_close(b, a, rtol=1e-9, atol=1e-9)
        except AssertionError as error:
            return f"{name}: {error}"
    return None


def attempt(module, machine, steps):
    """Return the gradients of a program; None if a write broke what backward needs."""
    try:
        return run(module, machine, steps)
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            return None
        raise


def fault(seed, torch=None):
    """Return what is wrong with one program, "refused" if a write broke what backward needs, or None."""
    steps = program(seed, hooked_views=torch is None)
    found = attempt(tp, Real(tp), steps)
    wanted = attempt(tp, Plain(tp), steps) if torch is None else attempt(torch, Real(torch), steps)
    if wanted is None or (found is None and torch is None):
        return "refused"
    problem = (
        "refused, torch computes" if found is None else difference(wanted, found, torch is not None)
    )
    return None if problem is None else f"{seed}: {problem}"


def faults(seeds, torch=None):
    found = [fault(seed, torch) for seed in seeds]
    wrong = [text for text in found if text not in (None, "refused")]
    return wrong, found.count(None)


@pytest.mark.parametrize("part", range(SLICES))
def test_without_views_and_writes(part):
    wrong, compared = faults(range(part, COUNT, SLICES))
    assert not wrong, "\n".join(wrong)
    assert compared > COUNT // SLICES // 3


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("part", range(SLICES))
def test_against_torch(part):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    wrong, compared = faults(range(part, COUNT, SLICES), torch)
    assert not wrong, "\n".join(wrong)
    assert compared > COUNT // SLICES // 3


def test_planted_faults_are_found(monkeypatch):
    with monkeypatch.context() as patch:
        retain = views.retain  # that leaves the node from before as it was
        for module in (recorder, views):
            patch.setattr(module, "retain", lambda tensor, before: retain(tensor, None))
        assert faults(range(60))[0]
    with monkeypatch.context() as patch:
        # A write the base does not hear of.
        patch.setattr(views, "rebase", lambda tensor, node: None)
        assert faults(range(60))[0]
    assert faults(range(60))[0] == []
