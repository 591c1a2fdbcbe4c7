"""Names for annotations: classes that modules import for type checkers only, since they import each other."""

from __future__ import annotations

import sys


def provide(package: str, **classes: object) -> None:
    """Give the modules of a package classes that their annotations name, once these are there.

    ``typing.get_type_hints`` evaluates annotations where their function or class was defined, so a name has
    to be found there. Modules that import nothing for type checkers only are left as they are.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(package) and "TYPE_CHECKING" in vars(module):
            for class_name, value in classes.items():
                vars(module).setdefault(class_name, value)
