"""The conformance suite: ``pytest --pyargs tensorplug.testing.conformance --device NAME``.

``--op PATTERNS`` takes some of the ops, ``--every N`` a sample of their cases.
"""
