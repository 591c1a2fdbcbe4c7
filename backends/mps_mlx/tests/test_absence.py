"""Where MLX is missing: what users read."""

import sys

from tensorplug_mps_mlx._plugin import AbsentPlugin


def test_the_reason_names_the_package(monkeypatch):
    runtime = AbsentPlugin(ImportError("No module named 'mlx'")).runtime
    monkeypatch.setattr(sys, "platform", "darwin")
    assert runtime.unavailable_reason().endswith("(No module named 'mlx'); pip install mlx")
    monkeypatch.setattr(sys, "platform", "linux")
    assert "pip install 'mlx[cpu]', whose CPU device" in runtime.unavailable_reason()


def test_the_runtime_is_complete():
    from tensorplug.plugin import DeviceRuntime

    kind = type(AbsentPlugin(ImportError()).runtime)
    assert all(getattr(kind, name) is not getattr(DeviceRuntime, name) for name in kind.required)
