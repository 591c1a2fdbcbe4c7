"""The records of the declared ops, a module per family."""
