"""Compiles the hot path where Cython and a C compiler are; without them the same sources run as they are.

An editable installation runs the sources. ``TENSORPLUG_PURE=1`` in the environment leaves compiling out,
``TENSORPLUG_PURE=0`` makes a build that cannot compile fail.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup

# A module is compiled if a .pxd beside it types what its source leaves untyped.
ROOTS = ("core", "autograd", "graph")

DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the types are in the .pxd files; annotations are for people
    "auto_pickle": False,
    "binding": True,  # functions keep their signature, and bind as methods
    "c_api_binop_methods": True,  # an operator serves both orders: subclasses inherit the slot itself
}

# What each folder is called as a package: Cython finds cimported modules by their place.
STAGE = Path("build", "sources")

# An index that has this package has the wheels of the fast backend too; a clone has to do without an index.
FAST_BACKEND = "tensorplug-cpu-cython>=0.1.0.dev0,<0.2"
WHERE_ITS_WHEELS_ARE = "sys_platform == 'linux' and platform_machine == 'x86_64'"


def dependencies() -> list[str]:
    """Return what the package needs: in what is released, the fast backend too."""
    lines = Path("requirements.txt").read_text("utf-8").splitlines()
    needed = [line.partition("#")[0].strip() for line in lines]
    is_release = "sdist" in sys.argv or Path("PKG-INFO").exists()
    return [*needed, f"{FAST_BACKEND}; {WHERE_ITS_WHEELS_ARE}"] if is_release else needed


def compiled() -> list[Extension]:
    """Return the extension modules, none where they cannot be built or are not wanted."""
    wish = os.environ.get("TENSORPLUG_PURE", "")
    if wish not in ("", "0") or not {"bdist_wheel", "build_ext"} & set(sys.argv):
        return []
    try:
        from Cython.Build import cythonize
        from Cython.Compiler import Options, TypeSlots
    except ImportError:
        if wish == "0":
            raise
        return []
    Options.error_on_unknown_names = False  # some names are set by a module that is imported later
    # Beside its slot an operator would be a method, which Python looks up for subclasses and calls instead.
    TypeSlots.is_binop_number_slot = lambda _: False
    modules = []
    (STAGE / "tensorplug").mkdir(parents=True, exist_ok=True)
    (STAGE / "tensorplug" / "__init__.py").touch()
    folders = sorted({types.parent for root in ROOTS for types in Path(root).rglob("*.pxd")})
    for folder in folders:
        package = ".".join(["tensorplug", *folder.parts])
        stage = STAGE.joinpath(*package.split("."))
        stage.mkdir(parents=True, exist_ok=True)
        (stage / "__init__.py").touch()
        (stage.parent / "__init__.py").touch()
        for types in sorted(folder.glob("*.pxd")):
            source = types.with_suffix(".py")
            shutil.copy2(types, stage)
            shutil.copy2(source, stage)
            place = (stage / source.name).relative_to(STAGE)
            modules.append(
                Extension(
                    f"{package}.{types.stem}",
                    [place.as_posix()],
                    # More than -O2 takes the compiler half as long again, for the same instructions.
                    extra_compile_args=[] if os.name == "nt" else ["-O2", "-g0"],
                )
            )
    # In there, so that tracebacks name files as below site-packages, where Python finds their lines.
    with contextlib.chdir(STAGE):
        extensions: list[Extension] = cythonize(
            modules, compiler_directives=DIRECTIVES, include_path=["."]
        )
    for extension in extensions:
        extension.sources = [(STAGE / source).as_posix() for source in extension.sources]
        extension.depends = [(STAGE / file).as_posix() for file in extension.depends]
        extension.optional = wish != "0"  # a compiler that fails leaves a pure wheel
    return extensions


setup(
    install_requires=dependencies(),
    ext_modules=compiled(),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
