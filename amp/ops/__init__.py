"""The ops of mixed precision."""
