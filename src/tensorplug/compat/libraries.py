"""What stands for libraries of ops that are compiled against torch: a plugin of the same ops, for some."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tensorplug.core import plugins

#: The packages whose libraries a plugin of :mod:`tensorplug.compat` answers for.
PACKAGES = ("torchvision", "torchaudio")


def load(path: str | Path) -> None:
    """Register the plugin that has the ops of a library.

    Raises
    ------
    OSError
        If none has them: the library is compiled against torch itself.
    """
    place = Path(path).as_posix()
    place = re.sub(r"\.(cpython|cp|abi)[^./]*", "", place)  # `_C.cpython-311-x86_64-linux-gnu.so`
    for package in PACKAGES:
        plugin = importlib.import_module(f"tensorplug.compat.{package}").plugin
        if re.search(f"(^|/){package}/{plugin.libraries}", place):
            if plugins.record_of(plugin.name) is None:
                plugins.register(plugin)
                complete = importlib.import_module("tensorplug.library.registration").COMPLETE
                complete.update(plugin.namespaces)
            return
    raise OSError(
        f"{path}: tensorplug loads no libraries that are compiled against torch; their ops have to come "
        f"from a plugin, as those of {' and '.join(PACKAGES)} do"
    )
