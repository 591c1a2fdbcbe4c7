"""Run a program's source under another library: one text, two libraries to compare."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

OURS = "tensorplug"
EXAMPLES = Path(__file__).parents[1] / "examples"


def load(folder: Path, name: str, library: ModuleType) -> ModuleType:
    """Import a module from a folder, with `library` in the place of tensorplug.

    Parameters
    ----------
    folder : Path
        Where the module, and what it imports by plain names, lies.
    name : str
        Of the module.
    library : module
        What its ``import tensorplug`` gives: tensorplug itself, torch, or one that looks like them.

    Returns
    -------
    module
        A new one in each call, which does not stay in ``sys.modules``.
    """
    beside = {path.stem for path in folder.glob("*.py")}
    standing_in = {} if library.__name__ == OURS else _modules_of(library)
    hidden = beside | ({key for key in sys.modules if _is_ours(key)} if standing_in else set())
    with _replaced(hidden, beside | set(standing_in), standing_in):
        sys.path.insert(0, str(folder))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(folder))


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith(f"{OURS}.")


def _modules_of(library: ModuleType) -> dict[str, ModuleType]:
    """Return the library's modules that are imported, under tensorplug's names."""
    prefix = library.__name__
    return {
        OURS + name[len(prefix) :]: module
        for name, module in list(sys.modules.items())
        if name == prefix or name.startswith(f"{prefix}.")
    }


@contextmanager
def _replaced(
    hidden: set[str], removed: set[str], standing_in: dict[str, ModuleType]
) -> Iterator[None]:
    """Put modules into ``sys.modules`` in the place of others, and restore those afterwards."""
    before = {name: sys.modules.pop(name) for name in hidden if name in sys.modules}
    sys.modules.update(standing_in)
    try:
        yield
    finally:
        for name in removed:
            sys.modules.pop(name, None)
        sys.modules.update(before)
