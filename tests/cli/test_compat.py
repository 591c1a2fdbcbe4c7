"""Packages installed without torch: what is asked of pip, round by round."""

import importlib.metadata
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tensorplug.cli import main

REQUIRED = {
    "timm": ["torch", "torchvision>=0.1", "safetensors-x>=1", "docs-x; extra == 'docs'", "pytest"],
    "torchvision": ["torch==2.14", "numpy", "old-x; python_version < '3'"],
    "safetensors-x": ["triton", "nvidia-cublas"],
}


@pytest.fixture
def commands(monkeypatch):
    """Return what is asked of pip, which installs nothing."""
    asked = []
    known = importlib.metadata.version

    def run(command, **options):
        assert command[:4] == [sys.executable, "-m", "pip", "install"]
        assert "--no-deps" in command
        asked.append(command[command.index("--no-deps") + 1 :])
        return SimpleNamespace(returncode="broken" in command)

    def version(name):
        if name in ("filelock", "fsspec"):
            return "1.0"
        if name in REQUIRED or name == "jinja2" or name.endswith("-x"):
            raise importlib.metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: REQUIRED.get(name))
    monkeypatch.setattr(importlib.metadata, "version", version)
    return asked


def test_all_but_torch_is_installed_in_rounds(commands):
    assert main(["compat", "install", "timm"]) == 0
    assert commands == [["timm"], ["jinja2", "torchvision>=0.1", "safetensors-x>=1"]]


def test_extras_bring_their_requirements(commands):
    assert main(["compat", "install", "timm[docs]==1.0"]) == 0
    assert commands[1] == ["jinja2", "torchvision>=0.1", "safetensors-x>=1", "docs-x"]


def test_options_go_to_pip(commands):
    assert main(["compat", "install", "torchvision", "--pip=--find-links=dist"]) == 0
    assert commands == [["--find-links=dist", "torchvision"], ["--find-links=dist", "jinja2"]]


def test_a_failure_of_pip_is_said(commands, capsys):
    assert main(["compat", "install", "broken"]) == 1
    assert "could not install broken" in capsys.readouterr().err
