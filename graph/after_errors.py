"""Errors: which variables a program looks at after one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from .flow import Flow, leaves_loop, read_names

__all__ = ["seen_after_error"]


def seen_after_error(statement: ast.Try | ast.With, reads: Counter[str], looped: bool) -> set[str]:
    """Return variables that are read after an error in a block.

    Statements of the block that give them a value are no function of their own: it would not return it then.

    Parameters
    ----------
    statement : ast.Try or ast.With
        The latter with a context that may hide the error.
    reads : Counter of str
        How often the whole function reads each variable.
    looped : bool
        Whether the block may run again.
    """
    handlers = statement.handlers if isinstance(statement, ast.Try) else []
    ending = statement.finalbody if isinstance(statement, ast.Try) else []
    nodes = [node for part in (*handlers, *ending) for node in ast.walk(part)]
    found = set(read_names(nodes))
    goes_on = [handler for handler in handlers if not _ends(handler.body)]
    leaves = any([leaves_loop(child) for child in ending])
    if goes_on or leaves or isinstance(statement, ast.With):
        given = [Flow(()) for _ in goes_on]
        for flow, handler in zip(given, goes_on, strict=True):
            for child in handler.body:
                flow.visit(child)
            if leaves or any([leaves_loop(child) for child in handler.body]):
                flow.assigned.clear()
        elsewhere = reads - Counter(
            read_names([n for child in statement.body for n in ast.walk(child)])
        )
        again = Flow(())
        for child in statement.body if looped else ():
            again.visit(child)
        anew = set.intersection(*[flow.assigned for flow in given]) if given else set()
        found |= ({*elsewhere} | again.read) - anew
    return found


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Return whether nothing of the function follows a block."""
    leaves = any([leaves_loop(statement) for statement in body])
    return isinstance(body[-1], (ast.Raise, ast.Return)) and not leaves
