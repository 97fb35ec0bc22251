"""Our code in this process with one guard taken out of it.

Owns: the function object stays what it is and only its code is another one, so every module that
has imported it runs the mistake. What the guard asks is still asked; its answer does not count.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.support.guards import Guard


def break_guard(guard: Guard) -> None:
    """Take it out, for the rest of this process.

    Raises:
        LookupError: the function, or the expression in it, is not there.
    """
    module = importlib.import_module(guard.module)
    assert module.__file__ is not None
    path = Path(module.__file__)
    change = _Forced(guard)
    tree = ast.fix_missing_locations(change.visit(ast.parse(path.read_text())))
    if not change.done:
        raise LookupError(f"{guard.name}: no such expression in {path}")
    whole = compile(tree, str(path), "exec", dont_inherit=True)
    code = _code_of(whole, guard.function)
    function = _function(module, guard.function)
    if code is None or function.__code__.co_freevars != code.co_freevars:
        raise LookupError(f"{guard.name}: its function has no code of its own")
    function.__code__ = code


class _Forced(ast.NodeTransformer):
    """`expression` becomes `expression or True`, or `expression and False`."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.done = False

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        wanted = self._guard
        if self.done or not isinstance(node, ast.expr) or node.lineno != wanted.line:
            return node
        if node.col_offset != wanted.column or ast.unparse(node) != wanted.expression:
            return node
        self.done = True
        joint = ast.Or() if wanted.forced else ast.And()
        forced = ast.BoolOp(op=joint, values=[node, ast.Constant(wanted.forced)])
        return ast.copy_location(forced, node)


def _code_of(code: CodeType, name: str) -> CodeType | None:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_qualname == name:
                return one
            found = _code_of(one, name)
            if found is not None:
                return found
    return None


def _function(module: Any, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, cached_property):
        found = found.func
    found = inspect.unwrap(getattr(found, "__func__", found))
    if not isinstance(found, FunctionType):
        raise LookupError(f"{module.__name__}.{name} is no function")
    return found
