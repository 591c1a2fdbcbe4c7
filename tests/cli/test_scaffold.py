"""The packages that ``tensorplug new-…`` writes install, and pass the suite that they come with."""

import subprocess
import sys
from pathlib import Path

import pytest

from tensorplug.cli import main


def installed(folder: Path, package: Path) -> Path:
    """Install a package into a folder of its own."""
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([*command, str(package)], check=True, capture_output=True, text=True)
    return site


def run_in(package: Path, site: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=package,
        env={"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("distribution")
def test_extension(tmp_path, capsys):
    # The name decides which numbers are drawn; with these, the body's roundings add up in float16.
    assert main(["new-extension", "beads", "--into", str(tmp_path)]) == 0
    assert "next:" in capsys.readouterr().out
    package = tmp_path / "tensorplug-beads"
    site = installed(tmp_path, package)
    out = run_in(package, site, "pytest", "-q", "-p", "no:cacheprovider")
    assert "2 ops" in out
    assert " failed" not in out
    assert "kernel of beads" in run_in(package, site, "tensorplug", "explain", "beads._softcap")


@pytest.mark.slow
@pytest.mark.xdist_group("distribution")
def test_backend(tmp_path, capsys):
    assert main(["new-backend", "abacus", "--into", str(tmp_path)]) == 0
    assert "next:" in capsys.readouterr().out
    package = tmp_path / "tensorplug-abacus"
    site = installed(tmp_path, package)
    # Every 60th case: the device computes as the adapter does, which tests/plugins has at length.
    out = run_in(package, site, "pytest", "-q", "-p", "no:cacheprovider", "--every", "60")
    assert "conformance of 'abacus'" in out
    assert " failed" not in out
    assert "kernel of abacus" in run_in(
        package, site, "tensorplug", "explain", "square", "--device", "abacus"
    )


@pytest.mark.parametrize("kind", ["backend", "extension"])
class TestRefusals:
    @pytest.mark.parametrize("name", ["Cuda", "my-device", "1st", "class", "cpu", "meta", ""])
    def test_name(self, kind, name, tmp_path, capsys):
        assert main([f"new-{kind}", name, "--into", str(tmp_path)]) == 1
        assert repr(name) in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_no_such_folder(self, kind, tmp_path, capsys):
        (tmp_path / "file").touch()
        assert main([f"new-{kind}", "abacus", "--into", str(tmp_path / "file")]) == 1
        assert "Not a directory" in capsys.readouterr().err

    def test_nothing_is_overwritten(self, kind, tmp_path, capsys):
        kept = tmp_path / "tensorplug-abacus" / "README.md"
        kept.parent.mkdir()
        kept.write_text("mine", "utf-8")
        assert main([f"new-{kind}", "abacus", "--into", str(tmp_path)]) == 1
        assert "is there already" in capsys.readouterr().err
        assert kept.read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("kind", "name", "complaint"),
    [
        ("backend", "cuda", "is a device already (pip install"),
        ("backend", "nn", "would hide tensorplug.nn"),
        ("extension", "nn", "is taken by tensorplug"),
    ],
)
def test_a_name_that_something_else_has(kind, name, complaint, tmp_path, capsys):
    assert main([f"new-{kind}", name, "--into", str(tmp_path)]) == 1
    assert complaint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
