"""Running a random training program in a library: what it shows is a list of names and arrays."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from random import Random
from typing import Any

import numpy as np
from additions import add
from image_layers import IMAGE_LAYERS
from losses import CLASSES, loss_named
from optimizers import made_optimizers, made_scheduler
from plans import STEPS, Plan
from sequence_layers import PLACES, SEQUENCE_LAYERS

WIDTH = 8
#: Rows of the batches: one is smaller, which a compiled program must notice.
BATCHES = (4, 4, 3, 4, 4)
Trace = list[tuple[str, Any]]


def array(value: Any) -> Any:
    """Return a tensor or a number as an array."""
    value = value.detach() if hasattr(value, "detach") else value
    if hasattr(value, "to_dense") and value.is_sparse:
        value = value.to_dense()
    if hasattr(value, "double") and value.is_floating_point():
        value = value.double()
    return np.array(value.tolist() if hasattr(value, "tolist") else value)


def network_of(lib: Any, plan: Plan) -> Any:
    """Return a network whose parameters follow from the seed alone."""
    nn = lib.nn
    lib.manual_seed(plan.seed)
    layers, channels = [], 2
    for name, seed in plan.layers:
        if plan.images:
            module, channels = IMAGE_LAYERS[name](lib, Random(seed), channels)
        else:
            module = SEQUENCE_LAYERS[name](lib, Random(seed), WIDTH)
        layers.append(module)
    if plan.images:
        layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, CLASSES)]
    else:
        layers += [nn.Linear(WIDTH, CLASSES)]
    network = nn.Sequential(*layers)
    numbers = np.random.default_rng(plan.seed)
    with lib.no_grad():
        for parameter in network.parameters():
            scale, shift = (0.1, 0.6) if parameter.ndim < 2 else (parameter[0].numel() ** -0.5, 0.0)
            value = numbers.standard_normal(tuple(parameter.shape)) * scale + shift
            parameter.copy_(lib.tensor(value))
    network = network.to(parameter_dtype(lib, plan))
    if plan.channels_last:
        network = network.to(memory_format=lib.channels_last)
    if plan.addition:
        add(lib, network, plan.addition, Random(plan.seed))
        with lib.no_grad():
            for name, buffer in network.named_buffers():
                if name.endswith(("._u", "._v")):  # which begin as random directions
                    value = numbers.standard_normal(tuple(buffer.shape))
                    buffer.copy_(lib.tensor(value / np.linalg.norm(value)))
    return network


def parameter_dtype(lib: Any, plan: Plan) -> Any:
    """Return the dtype of parameters."""
    return getattr(lib, plan.precision if plan.precision in ("float64", "bfloat16") else "float32")


def batch(lib: Any, plan: Plan, step: int) -> tuple[Any, Any, Any]:
    """Return inputs, classes and numbers."""
    numbers, rows = np.random.default_rng([plan.seed, step]), BATCHES[step]
    shape = (rows, 2, 8, 8) if plan.images else (rows, PLACES, WIDTH)
    places = (rows,) if plan.images else (rows, PLACES)
    dtype = parameter_dtype(lib, plan)
    x = lib.tensor(numbers.standard_normal(shape)).to(dtype)
    if plan.channels_last:
        x = x.to(memory_format=lib.channels_last)
    y = lib.tensor(numbers.integers(0, CLASSES, places))
    z = lib.tensor(numbers.standard_normal((*places, CLASSES))).to(dtype)
    return x, y, z


class Training:
    """A network and what trains it."""

    def __init__(self, lib: Any, plan: Plan) -> None:
        self.lib, self.plan = lib, plan
        self.loss = loss_named(*plan.loss)
        self.average = None
        self.scaler = (
            lib.amp.GradScaler("cpu", init_scale=64.0) if plan.precision == "scaled" else None
        )
        self.begin(network_of(lib, plan))
        if plan.average:
            swa = lib.optim.swa_utils
            multi = swa.get_ema_multi_avg_fn(0.9)
            self.average = swa.AveragedModel(self.network, multi_avg_fn=multi, use_buffers=True)

    def begin(self, network: Any) -> None:
        """Make optimizers and a scheduler for a network."""
        plan, lib = self.plan, self.lib
        self.network = network
        trained = [p for p in network.parameters() if p.requires_grad or plan.addition != "frozen"]
        self.optimizers = made_optimizers(lib, *plan.optimizer, trained, plan.stepping)
        self.scheduler = made_scheduler(lib, plan.scheduler, self.optimizers[0])
        compiles = bool(plan.compiled) and hasattr(lib, "explain")  # torch's takes minutes
        self.called = lib.compile(network) if compiles and plan.compiled == "network" else network
        self.value = (
            lib.compile(self.value_of) if compiles and plan.compiled == "step" else self.value_of
        )

    # --- one step ---------------------------------------------------------------------------------

    def output(self, x: Any) -> Any:
        """Call the network, in one of the ways of doing so."""
        if self.plan.forward in ("checkpoint", "reentrant"):
            reentrant = self.plan.forward == "reentrant"
            return self.lib.utils.checkpoint.checkpoint(self.called, x, use_reentrant=reentrant)
        if self.plan.forward == "functional":
            state = {**dict(self.network.named_parameters()), **dict(self.network.named_buffers())}
            return self.lib.func.functional_call(self.network, state, (x,))
        return self.called(x)

    def value_of(self, x: Any, y: Any, z: Any) -> Any:
        """Return the loss of a batch."""
        with self.autocast():
            output = self.output(x).reshape(-1, CLASSES)
            output = output.to(z.dtype)
            return self.loss(self.lib, output, y.reshape(-1), z.reshape(-1, CLASSES))

    def autocast(self) -> Any:
        """Return the mode that the forward pass runs under."""
        if self.plan.precision in ("autocast", "scaled"):
            return self.lib.autocast("cpu", dtype=self.lib.bfloat16)
        return contextlib.nullcontext()

    def backward(self, x: Any, y: Any, z: Any, share: float = 1.0) -> Any:
        """Accumulate the gradients of a part of a batch, which has a share in the loss; return it."""
        lib, plan = self.lib, self.plan
        if plan.forward in ("func_grad", "per_sample"):
            return self.functional_gradients(x, y, z)
        if plan.penalty or plan.forward == "reentrant":
            x = x.detach().requires_grad_()
        loss = self.value(x, y, z) * share
        if plan.penalty:
            (slope,) = lib.autograd.grad(loss, x, create_graph=True)
            loss = loss + (slope**2).sum()
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        return loss.detach()

    def functional_gradients(self, x: Any, y: Any, z: Any) -> Any:
        """Take gradients by functional transforms, of the batch or of each sample."""
        lib, plan = self.lib, self.plan
        trained = {name: p for name, p in self.network.named_parameters() if p.requires_grad}

        def value(parameters: Any, x: Any, y: Any, z: Any) -> Any:
            output = lib.func.functional_call(self.network, parameters, (x,))
            rows = output.reshape(-1, CLASSES)
            return self.loss(lib, rows, y.reshape(-1), z.reshape(-1, CLASSES))

        parameters = {name: p.detach() for name, p in trained.items()}
        if plan.forward == "func_grad":
            found, loss = lib.func.grad_and_value(value)(parameters, x, y, z)
        else:
            one = lib.func.grad_and_value(lambda p, x, y, z: value(p, x[None], y[None], z[None]))
            found, loss = lib.func.vmap(one, in_dims=(None, 0, 0, 0))(parameters, x, y, z)
            mean = self.plan.loss[1] == "mean"
            found = {name: g.mean(0) if mean else g.sum(0) for name, g in found.items()}
            loss = loss.mean(0) if mean else loss.sum(0)
        for name, parameter in trained.items():
            gradient = found[name].detach().clone()  # two parameters may have got the same tensor
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return loss.detach()

    def gradients(self, step: int, trace: Trace) -> Any:
        """Return the loss of a batch, whose gradients are left in the parameters."""
        lib, plan = self.lib, self.plan
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=plan.to_none)
        pieces = list(zip(*[t.chunk(plan.parts) for t in batch(lib, plan, step)], strict=True))
        summed = plan.loss[1] == "sum"
        shares = [1.0 if summed else len(part[0]) / BATCHES[step] for part in pieces]
        total = sum(self.backward(*part, share) for part, share in zip(pieces, shares, strict=True))
        if self.scaler:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
        if step == 0 or step == STEPS - 1:
            for name, parameter in self.network.named_parameters():
                value = None if parameter.grad is None else array(parameter.grad)
                trace.append((f"gradient of {name}", value))
        clipping, parameters = lib.nn.utils, list(self.network.parameters())
        if plan.clip == "value":
            clipping.clip_grad_value_(parameters, 0.01)
        elif plan.clip:
            order = 1.0 if plan.clip == "norm1" else 2.0
            norm = clipping.clip_grad_norm_(parameters, 0.5, norm_type=order)
            trace.append(("norm", array(norm)))
        return total

    def step(self, step: int, trace: Trace) -> None:
        """Train on one batch."""
        plan = self.plan
        for number, event in plan.events:
            if number == step:
                getattr(self, event)()
        if plan.optimizer[0] == "LBFGS":
            loss = self.optimizers[0].step(lambda: self.gradients(step, trace))
        else:
            loss = self.gradients(step, trace)
            for optimizer in self.optimizers:
                if self.scaler:
                    self.scaler.step(optimizer)
                else:
                    optimizer.step()
        if self.scaler:
            self.scaler.update()
        trace.append((f"loss {step}", array(loss)))
        if plan.scheduler == "ReduceLROnPlateau":
            self.scheduler.step(float(step))
        elif self.scheduler is not None:
            self.scheduler.step()
        rates = [group["lr"] for optimizer in self.optimizers for group in optimizer.param_groups]
        trace.append((f"rates {step}", np.array(rates)))
        if self.average is not None:
            self.average.update_parameters(self.network)

    # --- events -----------------------------------------------------------------------------------

    def restore(self, network: Any, states: Any) -> None:
        """Go on with another network, and with optimizers and a scheduler that were saved."""
        network.train(self.network.training)
        self.begin(network)
        for optimizer, state in zip(self.optimizers, states["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(states["scheduler"])

    def states(self) -> Any:
        """Return what optimizers and scheduler know."""
        return {
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else None,
        }

    def reload(self) -> None:
        """Save everything and go on with what is read into new objects."""
        lib, file = self.lib, io.BytesIO()
        lib.save({"network": self.network.state_dict(), **self.states()}, file)
        file.seek(0)
        read = lib.load(
            file, weights_only=self.plan.scheduler not in ("LambdaLR", "MultiplicativeLR")
        )
        with lib.random.fork_rng():
            network = network_of(lib, self.plan)
        for new, old in zip(network.parameters(), self.network.parameters(), strict=True):
            new.requires_grad_(old.requires_grad)
        network.load_state_dict(read["network"])
        self.restore(network, read)

    def deepcopy(self) -> None:
        """Go on with a copy, while the original is spoilt."""
        old, states = self.network, copy.deepcopy(self.states())
        self.restore(copy.deepcopy(old), states)
        with self.lib.no_grad():
            for tensor in (*old.parameters(), *old.buffers()):
                tensor.zero_()

    def pickle(self) -> None:
        """Go on with what pickle makes of the network."""
        states = (
            pickle.loads(pickle.dumps(self.states())) if self.scheduler is None else self.states()
        )
        self.restore(pickle.loads(pickle.dumps(self.network)), copy.deepcopy(states))

    def freeze(self) -> None:
        """Have every second parameter get no more gradients."""
        for parameter in list(self.network.parameters())[:-1:2]:
            parameter.requires_grad_(False)

    def unfreeze(self) -> None:
        """Have all parameters get gradients."""
        self.network.requires_grad_(True)

    def evaluate(self) -> None:
        """Go on in evaluation mode."""
        self.network.eval()


def train(lib: Any, plan: Plan) -> Trace:
    """Run a program; return what it shows."""
    trace: Trace = []
    training = Training(lib, plan)
    lib.manual_seed(plan.seed)
    for step in range(STEPS):
        training.step(step, trace)
    shown = {"network": training.network.state_dict()}
    if training.average is not None:
        shown["average"] = training.average.state_dict()
    for number, optimizer in enumerate(training.optimizers):
        for key, state in optimizer.state_dict()["state"].items():
            numbers = {k: v for k, v in state.items() if isinstance(v, (int, float, lib.Tensor))}
            shown[f"optimizer {number}, {key}"] = numbers
    for where, state in shown.items():
        trace += [(f"{where}: {name}", array(state[name])) for name in sorted(state)]
    return trace
