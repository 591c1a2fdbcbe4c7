"""Signals at times of their own, as a user sends them, leave no mode of the thread on.

The other tests interrupt at each point of a program; these send a signal of the clock, which may come
anywhere in C as well.
"""

import os
import random
import signal
import sys
from contextlib import contextmanager

import pytest

import tensorplug as tp
from tensorplug.testing.process_state import process_state
from tensorplug.utils.checkpoint import checkpoint

TRIALS = 1500 if os.environ.get("TENSORPLUG_FUZZ") else 60


def within(context):
    def program(x):
        with context():
            (x * 2).sum()

    return program


def backward_of_checkpoint(x):
    checkpoint(lambda y: y.sin() * 2, x, use_reentrant=False).sum().backward()


PROGRAMS = {
    "inference_mode": within(tp.inference_mode),
    "no_grad": within(tp.no_grad),
    "enable_grad": within(tp.enable_grad),
    "saved_tensors_hooks": within(
        lambda: tp.autograd.graph.saved_tensors_hooks(lambda y: y, lambda y: y)
    ),
    "autocast": within(lambda: tp.autocast("cpu", tp.bfloat16)),
    "checkpoint": backward_of_checkpoint,
    "func.grad": lambda x: tp.func.grad(lambda y: y.sin().sum())(x.detach()),
    "vmap": lambda x: tp.func.vmap(lambda y: y.sin())(x.detach()),
    "backward": lambda x: (x * 2).exp().sum().backward(),
}


@contextmanager
def signal_after(seconds):
    """Interrupt what runs once so much time went by."""
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        # Once more after a while: Python drops what is raised in a finalizer.
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupts_at_random_times(name, monkeypatch):
    # What is raised in a finalizer is told here: pytest's hook takes so long that the next signal ends it.
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)
    program, rng = PROGRAMS[name], random.Random(name)
    x = tp.ones(4, requires_grad=True)
    for _ in range(3):
        program(x)  # caches fill
    before, interrupted = process_state(), 0
    for _ in range(TRIALS):
        try:
            with signal_after(rng.uniform(1e-4, 2e-3)):
                while True:
                    program(x)
        except KeyboardInterrupt:
            interrupted += 1
        assert process_state() == before
    assert interrupted == TRIALS
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0] * 4
