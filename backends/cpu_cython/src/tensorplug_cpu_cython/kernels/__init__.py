"""Which compiled kernel serves which op: one module per family, each with ``build(table)``."""
