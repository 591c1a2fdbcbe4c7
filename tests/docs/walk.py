"""A page as a script: its commands run, its files are written, its outputs are compared."""

import fnmatch
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)?(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page):
    """The fenced blocks of a page: language, file name, text."""
    return [match.groups() for match in FENCE.finditer(page.read_text("utf-8"))]


class Walk:
    """Goes through a page in a folder of its own; nothing is installed outside of it."""

    def __init__(self, folder):
        self.folder = folder
        self.here = folder
        self.site = folder / "site"

    def go(self, page):
        for language, file, text in blocks(page):
            if language == "console":
                self.commands(text)
            elif file is not None:
                path = self.here / file
                assert path.exists(), f"{file} is not there to be changed"
                path.write_text(text, "utf-8")
                self.install()

    def commands(self, text):
        command, expected = None, []
        for line in [*text.splitlines(), "$ end"]:
            if not line.startswith("$ "):
                expected.append(line)
                continue
            if command is not None:
                self.check(command, expected)
            command, expected = line.removeprefix("$ "), []

    def check(self, command, expected):
        said = [" ".join(line.split()) for line in self.run(command).splitlines()]
        for line in expected:
            pattern = re.sub(r"([\[\]*?])", r"[\1]", " ".join(line.split())).replace("…", "*")
            assert fnmatch.filter(said, f"{pattern}*"), (
                f"{command}: no line {line!r} in\n" + "\n".join(said)
            )

    def run(self, command):
        program, *rest = shlex.split(command)
        if program == "cd":
            self.here /= rest[0]
            return ""
        if program == "pip":
            assert rest == ["install", "-e", ".[test]"]
            return self.install()
        folder = self.here
        if program == "python":
            folder, rest = ROOT, [*rest, "--epochs", "1", "--out", str(self.folder / "out")]
        else:
            rest = ["-m", program, *rest]
        if program == "pytest":
            rest += ["-p", "no:cacheprovider"]
        environment = {
            **os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, *rest],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0 or program == "pytest", f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def install(self):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        command += [
            "--no-build-isolation",
            "--disable-pip-version-check",
            "--target",
            str(self.site),
        ]
        subprocess.run([*command, str(self.here)], check=True, capture_output=True, text=True)
        return ""
