"""Registers a kernel that would be fine, and one that takes the wrong arguments."""

from tensorplug.plugin import Kernel, hookimpl


def fine(input, other):
    return input * 0


def odd(left, middle, right):
    return left


class NonsensePlugin:
    name = "nonsense"

    @hookimpl
    def tensorplug_kernels(self):
        return [Kernel("mul", "cpu", fine, priority=99), Kernel("add", "cpu", odd, priority=99)]


plugin = NonsensePlugin()
