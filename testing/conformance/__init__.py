"""The conformance suite: ``pytest --pyargs tensorplug.testing.conformance --device NAME [--op PATTERN]``."""
