"""What the overhead suite times: work so small that the framework around the kernels counts."""

# ruff: noqa: ARG001  every operation is given the same three arguments

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .harness import Case, Function

Library = Any  # the module tensorplug or torch
Operation = Callable[[Library, Any, Any], Function]  # given the library and two vectors
SIZE = 10


def _transpose(lib: Library, a: Any, b: Any) -> Function:
    matrix = a.reshape(2, 5)
    return lambda: matrix.transpose(0, 1)


def _index_with_a_tensor(lib: Library, a: Any, b: Any) -> Function:
    index = lib.tensor([1, 3, 5])
    return lambda: a[index]


POINTWISE: dict[str, Operation] = {
    "add": lambda lib, a, b: lambda: a + b,
    "sub": lambda lib, a, b: lambda: a - b,
    "mul": lambda lib, a, b: lambda: a * b,
    "div": lambda lib, a, b: lambda: a / b,
    "exp": lambda lib, a, b: lambda: a.exp(),
    "relu": lambda lib, a, b: lambda: lib.relu(a),
    "add scalar": lambda lib, a, b: lambda: a + 1.5,
    "greater than": lambda lib, a, b: lambda: a > b,
}

REDUCTIONS: dict[str, Operation] = {
    "sum": lambda lib, a, b: lambda: a.sum(),
    "mean": lambda lib, a, b: lambda: a.mean(),
    "matmul": lambda lib, a, b: lambda: a @ b,
}

VIEWS: dict[str, Operation] = {
    "reshape": lambda lib, a, b: lambda: a.reshape(2, 5),
    "transpose": _transpose,
    "index with an int": lambda lib, a, b: lambda: a[3],
    "index with a slice": lambda lib, a, b: lambda: a[2:7],
    "index with a tensor": _index_with_a_tensor,
}


def all_cases() -> Iterator[Case]:
    """Yield every case that runs inside this process."""
    for name, operation in (POINTWISE | REDUCTIONS | VIEWS).items():
        yield Case(f"{name}, {SIZE} elements", _on_vectors(operation, recording=False))
        yield Case(f"{name}, {SIZE} elements, recording", _on_vectors(operation, recording=True))
    yield Case("chain of 100 mul and add", lambda lib: _forward(lib, mul_add_chain))
    yield Case("chain of 100 mul and add, and backward", lambda lib: _train(lib, mul_add_chain))
    yield Case("chain of 100 exp and log", lambda lib: _forward(lib, exp_log_chain))
    yield Case("chain of 100 exp and log, and backward", lambda lib: _train(lib, exp_log_chain))
    yield Case("x @ w + b, 32×32, recording", linear)
    yield Case("x @ w + b, 32×32, and backward", linear_backward)
    yield Case("broadcast (32, 32) + (32,), and backward", broadcast_backward)
    yield Case("MLP 32-64-10, training step, batch 16", mlp_step)
    yield Case("LSTM cell of 16, 50 steps, and backward", lstm_loop, tolerance=1e-4)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float32 numbers between 0.5 and 1.5, the same in every call."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


def tensors(lib: Library, *shapes: tuple[int, ...], grad: bool = False) -> list[Any]:
    """Return a tensor of each shape, with different numbers, the same in both libraries."""
    made = [lib.from_numpy(numbers(*shape, seed=seed)) for seed, shape in enumerate(shapes)]
    return [tensor.requires_grad_(grad) for tensor in made]


def gradients(loss: Any, *inputs: Any) -> list[Any]:
    """Run backward from a loss and take the gradients away from the inputs."""
    loss.backward()
    taken = [tensor.grad for tensor in inputs]
    for tensor in inputs:
        tensor.grad = None
    return taken


def _on_vectors(operation: Operation, recording: bool) -> Callable[[Library], Function]:
    def make(lib: Library) -> Function:
        return operation(lib, *tensors(lib, (SIZE,), (SIZE,), grad=recording))

    return make


# --- chains ---------------------------------------------------------------------------------------


def mul_add_chain(x: Any, factor: Any, term: Any) -> Any:
    """Multiply and add in turns, 100 operations, by tensors that need no gradient."""
    for _ in range(50):
        x = x * factor + term
    return x


def exp_log_chain(x: Any, factor: Any, term: Any) -> Any:
    """Take exponential and logarithm in turns, 100 operations; the gradient stays 1."""
    for _ in range(50):
        x = x.exp().log()
    return x


def _chain_inputs(lib: Library) -> tuple[Any, Any, Any]:
    (x,) = tensors(lib, (SIZE,), grad=True)
    return x, lib.full((SIZE,), 0.99), lib.full((SIZE,), 0.01)


def _forward(lib: Library, chain: Callable[[Any, Any, Any], Any]) -> Function:
    x, factor, term = _chain_inputs(lib)
    return lambda: chain(x, factor, term)


def _train(lib: Library, chain: Callable[[Any, Any, Any], Any]) -> Function:
    x, factor, term = _chain_inputs(lib)
    return lambda: gradients(chain(x, factor, term).sum(), x)


# --- layers ---------------------------------------------------------------------------------------


def linear(lib: Library) -> Function:
    """Apply a linear layer by hand."""
    x, w, b = tensors(lib, (32, 32), (32, 32), (32,), grad=True)
    return lambda: x @ w + b


def linear_backward(lib: Library) -> Function:
    """Apply a linear layer by hand, forward and backward."""
    x, w, b = tensors(lib, (32, 32), (32, 32), (32,), grad=True)
    return lambda: gradients((x @ w + b).mean(), x, w, b)


def broadcast_backward(lib: Library) -> Function:
    """Add a vector to every row, forward and backward: the gradient of the vector is a sum."""
    x, b = tensors(lib, (32, 32), (32,), grad=True)
    return lambda: gradients((x + b).mean(), x, b)


def mlp_step(lib: Library) -> Function:
    """Take a whole step of training: forward, loss, backward, SGD."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    with lib.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            weights = (numbers(*parameter.shape, seed=seed) - 1) / 4
            parameter.copy_(lib.from_numpy(weights))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    cross_entropy = nn.functional.cross_entropy
    (x,) = tensors(lib, (16, 32))
    labels = lib.arange(16) % 10

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def lstm_loop(lib: Library) -> Function:
    """Unroll an LSTM cell written in plain operations, forward and backward."""
    steps, batch, size = 50, 4, 16
    inputs = lib.from_numpy(numbers(steps, batch, size) - 1)
    with lib.no_grad():
        small = [t - 1 for t in tensors(lib, (size, 4 * size), (size, 4 * size), (4 * size,))]
    wx, wh, b = (t.requires_grad_() for t in small)

    def run() -> Any:
        h = c = lib.zeros(batch, size)
        for x in inputs:
            i, f, g, o = (x @ wx + h @ wh + b).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return gradients(h.sum(), wx, wh, b)

    return run
