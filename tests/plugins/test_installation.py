"""The pip lines that the project prints work from where tensorplug was installed."""

import json
from importlib import metadata

import pytest

from tensorplug.plugin import install_command

CUDA = "tensorplug-cuda-cupy[cuda13]"


@pytest.fixture
def installed_from(monkeypatch):
    """Let tensorplug have come from a place, written as installers write it."""

    def come_from(text):
        class Distribution:
            def read_text(self, name):
                return text if name == "direct_url.json" else None

        monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())

    return come_from


def test_an_index(installed_from):
    installed_from(None)
    assert install_command(CUDA) == f"pip install '{CUDA}'"


def test_a_folder(installed_from, tmp_path):
    clone = tmp_path / "a clone"
    backend = clone / "backends" / "cuda_cupy"
    backend.mkdir(parents=True)
    installed_from(json.dumps({"url": clone.as_uri(), "dir_info": {"editable": True}}))
    assert install_command(CUDA) == f"pip install '{backend}[cuda13]'"
    assert install_command("tensorplug") == f"pip install '{clone}'"
    assert install_command("acme-kernels") == "pip install 'acme-kernels'"


def test_a_folder_that_went_away(installed_from, tmp_path):
    installed_from(json.dumps({"url": (tmp_path / "gone").as_uri(), "dir_info": {}}))
    assert install_command(CUDA) == f"pip install '{CUDA}'"


def test_a_git_address(installed_from):
    origin = {
        "url": "https://example.org/tensorplug.git",
        "vcs_info": {"vcs": "git", "commit_id": "abc"},
    }
    installed_from(json.dumps(origin))
    place = "git+https://example.org/tensorplug.git@abc#subdirectory=backends/cuda_cupy"
    assert install_command(CUDA) == f"pip install '{CUDA} @ {place}'"
    assert install_command("tensorplug").endswith("tensorplug.git@abc'")


def test_a_wheel(installed_from):
    installed_from(json.dumps({"url": "file:///tmp/tensorplug.whl", "archive_info": {}}))
    assert install_command(CUDA) == f"pip install '{CUDA}'"


def test_not_installed_at_all(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    assert install_command(CUDA) == f"pip install '{CUDA}'"
