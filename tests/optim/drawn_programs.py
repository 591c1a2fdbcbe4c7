"""Programs of an optimizer with everything drawn, each the same for tensorplug and for torch.

A program makes parameters of several shapes and dtypes, sorts them into groups that set options of their own,
and takes steps from drawn gradients, some of them missing. Between the steps it changes options, adds a
group, copies the optimizer, or goes on with another one that loads its state.
"""

from __future__ import annotations

import copy
from random import Random
from typing import Any

SHAPES = ((2, 3), (3,), (), (1, 2, 1), (0,), (4, 1))
FLAG = (False, False, True)
DECAY = (0, 0, 0.1)
BETAS = ((0.9, 0.999), (0.5, 0.8), (0.0, 0.9))
#: What options are drawn from. What an optimizer refuses, torch's does, too.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "SGD": {
        "momentum": (0, 0.9, 0.5), "dampening": (0, 0, 0.3), "weight_decay": DECAY, "nesterov": FLAG,
    },
    "Adam": {
        "betas": BETAS, "eps": (1e-8, 1e-2), "weight_decay": DECAY, "amsgrad": FLAG,
        "decoupled_weight_decay": FLAG,
    },
    "AdamW": {"betas": BETAS, "eps": (1e-8, 1e-2), "weight_decay": (0.01, 0, 0.3), "amsgrad": FLAG},
    "RMSprop": {
        "alpha": (0.99, 0.5), "eps": (1e-8, 1e-2), "weight_decay": DECAY, "momentum": (0, 0.9),
        "centered": FLAG,
    },
    "Adagrad": {
        "lr_decay": (0, 0.1), "weight_decay": DECAY, "initial_accumulator_value": (0, 0.1),
        "eps": (1e-10, 1e-2),
    },
    "Adadelta": {"rho": (0.9, 0.5), "eps": (1e-6, 1e-2), "weight_decay": DECAY},
    "Adamax": {"betas": BETAS, "eps": (1e-8, 1e-2), "weight_decay": DECAY},
    "NAdam": {
        "betas": BETAS, "eps": (1e-8, 1e-2), "weight_decay": DECAY, "momentum_decay": (4e-3, 0.1),
        "decoupled_weight_decay": FLAG,
    },
    "RAdam": {
        "betas": BETAS, "eps": (1e-8, 1e-2), "weight_decay": DECAY, "decoupled_weight_decay": FLAG,
    },
    "ASGD": {"lambd": (1e-4, 0.01), "alpha": (0.75, 0.5), "t0": (1e6, 2), "weight_decay": DECAY},
    "Rprop": {"etas": ((0.5, 1.2), (0.3, 1.5)), "step_sizes": ((1e-6, 50), (1e-4, 0.1))},
    "Adafactor": {
        "beta2_decay": (-0.8, -0.5), "eps": ((None, 1e-3), (1e-3, 1e-2)), "d": (1.0, 2.0),
        "weight_decay": DECAY,
    },
    "LBFGS": {
        "max_iter": (1, 3), "history_size": (100, 2), "line_search_fn": (None, "strong_wolfe"),
        "tolerance_change": (1e-9, 1e-3),
    },
}  # fmt: skip
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
RATES = (0.1, 0.01, 0.5)
#: What is done between steps, and how often beside them.
BETWEEN = ("rate", "option", "group", "copy", "reload", "other reload", "clear", "torch's state")

#: After which torch's fail.
NOT_OF_TORCH = (("Adagrad", "group"), ("LBFGS", "group"), ("LBFGS", "copy"))


class Program:
    """What a seed stands for: drawn once, then run by either library."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Random(seed)
        self.name = draw.choice(sorted(OPTIONS))
        self.complex = self.name not in ("Adafactor", "LBFGS") and draw.random() < 0.2
        wide = (
            draw.random() < 0.5 or self.name == "LBFGS"
        )  # rounding grows from iteration to iteration
        self.dtypes = ("float64",) if wide else ("float32", "float64")
        if self.complex:
            self.dtypes += ("complex128",)
        # torch's Adafactor divides by the number of elements.
        self.shapes = [s for s in SHAPES if self.name != "Adafactor" or 0 not in s]
        groups = 1 if self.name == "LBFGS" else draw.choice((1, 1, 2, 3))
        self.how = self._ways()
        self.options = {**self.options_drawn(), **self.how}
        self.groups = [self.group(n > 0 or draw.random() < 0.2) for n in range(groups)]
        self.events = [self.event() for _ in range(draw.randint(3, 8))]

    def _ways(self) -> dict[str, Any]:
        draw = self.draw
        if self.name == "LBFGS":
            return {}
        how: dict[str, Any] = {"maximize": True} if draw.random() < 0.2 else {}
        way = draw.choice(("", "", "foreach", "for", "fused", "capturable"))
        if way == "foreach":
            how["foreach"] = True
        elif way == "for":
            how["foreach"] = False
        elif way == "fused" and self.name in FUSED and not self.complex:
            how["fused"] = True
        return how

    def options_drawn(self) -> dict[str, Any]:
        """Return some of the options."""
        draw = self.draw
        found = {n: draw.choice(c) for n, c in OPTIONS[self.name].items() if draw.random() < 0.5}
        if draw.random() < 0.8:
            found["lr"] = draw.choice(RATES)
        if self.name == "LBFGS":
            found.setdefault("max_iter", 3)
        return found

    def group(self, own: bool) -> dict[str, Any]:
        """Return a group: the shapes, dtypes and numbers of its parameters, and its own options."""
        draw = self.draw
        made = []
        for _ in range(draw.randint(1, 3)):
            shape, dtype = draw.choice(self.shapes), draw.choice(self.dtypes)
            made.append((shape, dtype, self.numbers(shape, dtype)))
        options = self.options_drawn() if own else {}
        options.pop("initial_accumulator_value", None)  # torch asks the optimizer's alone
        return {"made": made, **options}

    def numbers(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return nested lists of numbers."""
        if shape:
            return [self.numbers(shape[1:], dtype) for _ in range(shape[0])]
        real, imaginary = self.draw.gauss(0, 1), self.draw.gauss(0, 1)
        return complex(real, imaginary) if dtype.startswith("complex") else real

    def event(self) -> tuple[Any, ...]:
        """Return what is done next."""
        draw = self.draw
        what = draw.choice((*["step"] * len(BETWEEN), *BETWEEN))
        if (self.name, what) in NOT_OF_TORCH:
            what = "step"
        if what == "step":
            return what, draw.getrandbits(30), draw.random() < 0.3
        if what == "rate":
            return what, draw.getrandbits(8), draw.choice(RATES)
        if what == "option":
            name = draw.choice(sorted(OPTIONS[self.name]))
            return what, draw.getrandbits(8), name, draw.choice(OPTIONS[self.name][name])
        if what == "group":
            return what, self.group(draw.random() < 0.5)
        if what == "other reload":
            return what, self.options_drawn()
        return (what,)


class Run:
    """A program under way in one of the libraries."""

    def __init__(self, program: Program, lib: Any) -> None:
        self.program, self.lib = program, lib
        self.parameters: list[Any] = []
        groups = [self.made(group) for group in program.groups]
        single = len(groups) == 1 and len(groups[0]) == 1
        given = groups[0]["params"] if single else groups
        self.kind = getattr(lib.optim, program.name)
        self.optimizer = self.kind(given, **program.options)

    def made(self, group: dict[str, Any]) -> dict[str, Any]:
        """Return a group with its parameters."""
        lib = self.lib
        params = [
            lib.tensor(numbers, dtype=getattr(lib, dtype)).reshape(shape).requires_grad_()
            for shape, dtype, numbers in group["made"]
        ]
        self.parameters += params
        own = {name: value for name, value in group.items() if name != "made"}
        return {"params": params, **own}

    def apply(self, event: tuple[Any, ...], state: Any = None) -> Any:
        """Do what comes next; return what a step returns."""
        what, *given = event
        return getattr(self, what.replace(" ", "_").replace("'", ""))(*given, *state or ())

    def step(self, seed: int, closure: bool) -> Any:
        """Take a step from gradients that the seed gives."""
        if self.program.name == "LBFGS":
            return self.optimizer.step(lambda: self.loss(Random(seed)))
        draw = Random(seed)

        def gradients() -> Any:
            draw.seed(seed)
            for p in self.parameters:
                numbers = [
                    complex(draw.gauss(0, 1), draw.gauss(0, 1))
                    if p.is_complex()
                    else draw.gauss(0, 1)
                    for _ in range(p.numel())
                ]
                missing = draw.random() < 0.15
                p.grad = None
                if not missing:
                    p.grad = self.lib.tensor(numbers, dtype=p.dtype).reshape(p.shape) * 0.5
                    p.grad += p.detach()
            return sum(float(p.detach().abs().sum()) for p in self.parameters)

        if closure:
            return self.optimizer.step(gradients)
        gradients()
        return self.optimizer.step()

    def loss(self, draw: Random) -> Any:
        """Return a loss after its backward pass, for what asks for losses that fit their gradients."""
        self.optimizer.zero_grad()
        terms = []
        for p in self.parameters:
            target, power = self.lib.full_like(p, draw.gauss(0, 1)).detach(), draw.choice((2, 4))
            terms.append((draw.uniform(0.5, 2) * (p - target) ** power).sum())
        total = sum(terms[1:], terms[0])
        total.backward()
        return total.item()

    def rate(self, number: int, value: float) -> None:
        """Set the rate of a group."""
        groups = self.optimizer.param_groups
        groups[number % len(groups)]["lr"] = value

    def option(self, number: int, name: str, value: Any) -> None:
        """Set another option of a group."""
        groups = self.optimizer.param_groups
        groups[number % len(groups)][name] = value

    def group(self, group: dict[str, Any]) -> None:
        """Add a group."""
        self.optimizer.add_param_group(self.made(group))

    def copy(self) -> None:
        """Go on with a copy, of the parameters too."""
        self.optimizer, self.parameters = copy.deepcopy((self.optimizer, self.parameters))

    def reload(self) -> None:
        """Go on with another optimizer of the same options that loads the state."""
        self.other_reload(self.program.options)

    def other_reload(self, options: dict[str, Any]) -> None:
        """Go on with another optimizer, whose options the loaded ones replace."""
        saved = self.optimizer.state_dict()
        groups = [{"params": group["params"]} for group in self.optimizer.param_groups]
        self.optimizer = self.kind(groups, **options)
        self.optimizer.load_state_dict(saved)

    def torchs_state(self, state: dict[str, Any]) -> None:
        """Load a state."""
        self.optimizer.load_state_dict(state)

    def clear(self) -> None:
        """Forget the gradients."""
        self.optimizer.zero_grad()
