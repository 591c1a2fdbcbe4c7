"""The conformance suite that a plugin's author runs."""
