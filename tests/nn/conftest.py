"""Comparison with torch: the same call on the same float64 numbers, outputs and all gradients."""

import contextlib
import warnings

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

RTOL = 1e-10
ATOL = 1e-12


def _ours(value):
    """Return torch's tensors as ours, at any depth; everything else as it is."""
    import torch

    if isinstance(value, torch.Tensor):
        dtype = getattr(tp, str(value.dtype).removeprefix("torch."))
        made = tp.tensor(value.detach().tolist(), dtype=dtype).reshape(tuple(value.shape))
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_ours(item) for item in value)
    return value


def _tensors(value):
    """Return the tensors in a result, at any depth."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if hasattr(value, "dtype") else []


def _assert_equal(ours, theirs, what, rtol, atol):
    import torch

    assert tuple(ours.shape) == tuple(theirs.shape), what
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch."), what
    mine = torch.tensor(ours.detach().tolist(), dtype=theirs.dtype).reshape(theirs.shape)
    torch.testing.assert_close(
        mine, theirs.detach(), rtol=rtol, atol=atol, equal_nan=True, msg=what
    )


def _loss(outputs):
    """Return a scalar in which every element of every output has a weight of its own."""
    total = 0
    for output in outputs:
        if output.requires_grad:
            flat = output.reshape(-1)
            weights = [((i * 7919) % 13 - 6) / 5 + 0.1 for i in range(flat.shape[0])]
            library = tp if isinstance(output, tp.Tensor) else __import__("torch")
            total = total + (flat * library.tensor(weights, dtype=flat.dtype)).sum()
    return total


class Comparison:
    """Calls a function of ours and one of torch's, and asserts that they agree."""

    def __call__(self, ours, theirs, *args, rtol=RTOL, atol=ATOL, **kwargs):
        """Compare outputs, and the gradients of every argument that requires one."""
        mine, my_options = _ours(list(args)), {k: _ours(v) for k, v in kwargs.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = theirs(*args, **kwargs)
            result = ours(*mine, **my_options)
        expected_tensors, result_tensors = _tensors(expected), _tensors(result)
        assert len(result_tensors) == len(expected_tensors)
        for number, (a, b) in enumerate(zip(result_tensors, expected_tensors, strict=True)):
            _assert_equal(a, b, f"output {number}", rtol, atol)
        inputs = [
            (a, b)
            for a, b in zip(
                _tensors([*mine, *my_options.values()]),
                _tensors([*args, *kwargs.values()]),
                strict=True,
            )
            if b.requires_grad
        ]
        loss = _loss(expected_tensors)
        if not isinstance(loss, int):
            for _, b in inputs:
                b.grad = None
            loss.backward()
            _loss(result_tensors).backward()
            for number, (a, b) in enumerate(inputs):
                if b.grad is None or a.grad is None:  # no path, or one along which all is zero
                    other = a.grad if b.grad is None else b.grad
                    assert other is None or not other.abs().sum().item(), f"input {number}"
                else:
                    _assert_equal(a.grad, b.grad, f"gradient of input {number}", rtol, atol)
        return result

    def functional(self, name, *args, **kwargs):
        """Compare ``F.<name>``."""
        import torch

        return self(getattr(F, name), getattr(torch.nn.functional, name), *args, **kwargs)

    def module(self, name, options, *inputs, training=True, **kwargs):
        """Compare ``nn.<name>(*options)`` with the same state: outputs, gradients, state, and repr."""
        import torch

        positional, named = options if isinstance(options, tuple) else ((), options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = getattr(torch.nn, name)(*positional, **named).double().train(training)
            ours = getattr(tp.nn, name)(
                *_ours(list(positional)), **{k: _ours(v) for k, v in named.items()}
            )
        ours = ours.double().train(training)
        state = theirs.state_dict()
        assert list(ours.state_dict()) == list(state)
        for key, value in ours.state_dict().items():
            assert tuple(value.shape) == tuple(state[key].shape), key
        ours.load_state_dict({key: _ours(value) for key, value in state.items()})
        assert repr(ours) == repr(theirs)
        self(ours, theirs, *inputs, **kwargs)
        for (key, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            if b.grad is not None:
                _assert_equal(a.grad, b.grad, f"gradient of {key}", RTOL, ATOL)
        for (key, a), b in zip(ours.named_buffers(), theirs.buffers(), strict=True):
            _assert_equal(a, b, f"buffer {key}", RTOL, ATOL)
        return ours

    def errors(self, ours, theirs, *args, **kwargs):
        """Assert that both raise, and exceptions of the same type."""
        with pytest.raises(Exception) as expected, _quiet():  # noqa: PT011
            theirs(*args, **kwargs)
        with pytest.raises(Exception) as raised, _quiet():  # noqa: PT011
            ours(*_ours(list(args)), **{k: _ours(v) for k, v in kwargs.items()})
        assert issubclass(raised.type, expected.type), (raised.value, expected.value)


@contextlib.contextmanager
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def compare():
    """Return the comparison; skips where torch is missing."""
    torch = pytest.importorskip("torch", reason="values are compared with torch's")
    torch.manual_seed(0)
    return Comparison()
