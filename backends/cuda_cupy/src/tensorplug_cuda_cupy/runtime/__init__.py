"""The device's runtime: memory, streams, captures and graphs."""
