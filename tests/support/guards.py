"""Every guard in our source: a condition without which a remote effect could come about that a rule
forbids.

Owns the rule, by shape and by what a function reaches, not by file. Looked at are the functions
that reach a remote effect (call_graph.py) and all that they ask; of the clients of the outside
world (`resources/`) those that reach one, and those that answer with a verdict: true or false, a
reason, an exception. In them a guard is
  - the condition of an early way out (raise, return, continue, break), taken away;
  - the condition before something that is done or told, taken for met;
  - what a comprehension filters by, and each operand of `and` and `or`, taken away;
  - any other comparison, `and`, `or`, `not`, `any` and `all`, either way: a fact that others decide
  by.
Each such change is one mutant: an expression that is still evaluated, and whose answer does not
count.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.call_graph import Function, last_name, read_graph, walk
from tests.support.rooms import RESOURCES, ROOT

_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_ASKS = ("decide_", "guard_", "has_", "is_", "may_", "require_", "still_", "why_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """`expression` of a function, whose answer becomes `forced`. `name` outlives moves and edits
    around it.
    """

    name: str
    module: str
    function: str
    expression: str
    forced: bool
    line: int
    column: int


@cache
def find_guards(root: Path = ROOT) -> tuple[Guard, ...]:
    """All of them, by module and line."""
    graph = read_graph(root)
    found: list[Guard] = []
    seen: Counter[str] = Counter()
    for key in sorted(graph.asked):
        function = graph.functions[key]
        verdict = key not in graph.doers
        if verdict and key[0].startswith(f"{RESOURCES}.") and not _is_verdict(function):
            continue
        changes = {
            (node.lineno, node.col_offset, node.end_col_offset, forced): node
            for node, forced in _changes(function, verdict)
        }
        for (line, column, _end, forced), node in sorted(changes.items()):
            text = ast.unparse(node)
            plain = f"{function.name}: {text} is {forced}"
            seen[plain] += 1
            found.append(
                Guard(
                    name=plain if seen[plain] == 1 else f"{plain} #{seen[plain]}",
                    module=function.module,
                    function=function.name,
                    expression=text,
                    forced=forced,
                    line=line,
                    column=column,
                )
            )
    return tuple(found)


def _is_verdict(function: Function) -> bool:
    returns = "" if function.node.returns is None else ast.unparse(function.node.returns)
    if "bool" in returns or "str | None" in returns:
        return True
    if function.node.name.lstrip("_").startswith(_ASKS):
        return True
    return returns == "None" and any(isinstance(node, ast.Raise) for node in walk(function))


def _changes(function: Function, verdict: bool) -> Iterator[tuple[ast.expr, bool]]:
    """(expression, what its answer becomes)."""
    for node in walk(function):
        if isinstance(node, ast.If):
            leaves = isinstance(node.body[-1], _LEAVES)
            if leaves or node.orelse or verdict:
                yield node.test, False
            if node.orelse or not leaves:
                yield node.test, True
            yield from _operands(node.test)
        elif isinstance(node, ast.IfExp):
            yield node.test, True
            yield node.test, False
            yield from _operands(node.test)
        elif isinstance(node, ast.While):
            yield from _operands(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, True
                yield from _operands(test)
        elif isinstance(node, (ast.Return, ast.Assign, ast.AnnAssign, ast.keyword)) or (
            isinstance(node, ast.Call) and node.args
        ):
            for value in node.args if isinstance(node, ast.Call) else [node.value]:
                if _is_test(value):
                    assert value is not None
                    yield value, True
                    yield value, False
                    yield from _operands(value)


def _operands(test: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """Each operand of `and` and `or`, with the answer that leaves the others alone."""
    if isinstance(test, ast.BoolOp):
        for one in test.values:
            yield one, isinstance(test.op, ast.And)
            yield from _operands(one)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(test.operand)


def _is_test(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return last_name(value.func) in {"all", "any"}
    return isinstance(value, (ast.BoolOp, ast.Compare)) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    )
