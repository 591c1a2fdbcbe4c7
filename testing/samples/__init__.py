"""The records of the declared ops, a module or folder per family."""

import tensorplug.nn  # noqa: F401  registers its ops
