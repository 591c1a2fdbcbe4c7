"""The records of the declared ops, a module or folder per family."""

import tensorplug.nn
import tensorplug.sparse  # noqa: F401  they register their ops
