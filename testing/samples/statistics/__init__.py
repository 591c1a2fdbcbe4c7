"""The records of this family."""
