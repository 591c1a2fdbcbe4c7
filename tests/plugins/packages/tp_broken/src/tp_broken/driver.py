"""Needs a library that is not there."""


def load():
    raise ImportError("libshatter.so.3: cannot open shared object file")
