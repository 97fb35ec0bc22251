"""Which of our functions call which, read from the source, and which of them reach a remote effect.

Owns: no path is named, so modules may move. A call is resolved by the module's imports, by `self`,
or, of an attribute, by the one class of ours that has such a method, or those of several that the
module knows; not where the method is one of Python's own types'. A local name hides a function's.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.support.rooms import FOLDERS, ROOT, name_of

Key = tuple[str, str]  # module, name within it

# What changes something that others see, by the name that the receiver has everywhere.
EFFECTS = frozenset(
    {
        "abort_upload",
        "check_and_delete",
        "complete_upload",
        "create",
        "create_or_read",
        "create_upload",
        "delete",
        "put",
        "replace",
        "replace_if_match",
        "set",
        "trim_topic",
        "unload_topic",
        "upload_part",
    }
)
REMOTE = frozenset(
    name
    for plain in ("book", "broker", "client", "metadata", "objects", "records", "store")
    for name in (plain, f"_{plain}")
)
# Rooms that show, start or build: what they do to a cluster they do through the others.
_EDGES = frozenset({"_proto", "cli", "defs", "demo", "devstack", "metrics"})
_OF_PYTHON = frozenset(
    name for own in (str, bytes, dict, list, set, tuple, int, float) for name in dir(own)
) | {"close", "get", "now", "read", "seek", "send", "version", "write"}
# Effects that permit nothing and take nothing away from anybody.
HARMLESS = {
    "_Probe.clean_up": "keys of doctor's own",
    "_Probe.upload": "keys of doctor's own",
    "_conditional_create": "keys of doctor's own",
    "_if_match": "keys of doctor's own",
    "_multipart_if_absent": "keys of doctor's own",
    "_part_checksums": "keys of doctor's own",
    "_read_after_write": "keys of doctor's own",
    "_user_metadata": "keys of doctor's own",
    "_versions": "keys of doctor's own",
    "_marker": "keys of doctor's own",
    "_ask_store": "keys of doctor's own",
    "brokers_seen._write": "a note that makes later runs wait, never go on",
    "failures._record": "a note for people, and for when to try again",
    "settle_failures": "a note for people, and for when to try again",
    "_AskedOnce.put": "hands on what its caller writes",
}


@dataclass(frozen=True, slots=True)
class Function:
    """`name` has its classes before it; functions within it are part of it."""

    module: str
    name: str
    node: ast.FunctionDef
    of_class: str | None


@dataclass(frozen=True)
class CallGraph:
    """Functions of ours by module and name."""

    functions: Mapping[Key, Function]
    imports: Mapping[str, Mapping[str, tuple[str, str]]]
    methods: Mapping[str, list[Key]] = field(default_factory=dict)

    @cached_property
    def calls(self) -> dict[Key, set[Key]]:
        return {key: set(self._called(one)) for key, one in self.functions.items()}

    @cached_property
    def doers(self) -> frozenset[Key]:
        """Functions from which a remote effect can be reached."""
        callers: defaultdict[Key, set[Key]] = defaultdict(set)
        for key, called in self.calls.items():
            for one in called:
                callers[one].add(key)
        direct = (
            key
            for key, one in self.functions.items()
            if not {one.name, f"{one.module.rpartition('.')[2]}.{one.name}"} & HARMLESS.keys()
            and any(map(is_effect, walk(one)))
        )
        return _closed(direct, callers)

    @cached_property
    def asked(self) -> frozenset[Key]:
        """Functions that a doer calls, itself or through others: doers, too."""
        return _closed(self.doers, self.calls)

    def resolve(self, function: Function, callee: ast.expr) -> list[Key]:
        """What a name or an attribute may be, of our functions."""
        if isinstance(callee, ast.Name):
            return self._named(function.module, callee.id)
        if not isinstance(callee, ast.Attribute):
            return []
        owner = callee.value
        if callee.attr in _OF_PYTHON and last_name(owner) not in REMOTE:
            return []
        if isinstance(owner, ast.Name):
            if owner.id == "self" and function.of_class is not None:
                own = (function.module, f"{function.of_class}.{callee.attr}")
                return [own] if own in self.functions else []
            imported = self.imports[function.module].get(owner.id)
            if imported is not None:
                module, name = imported
                for key in ((f"{module}.{name}", callee.attr), (module, f"{name}.{callee.attr}")):
                    if key in self.functions:
                        return [key]
        found = self.methods.get(callee.attr, [])
        if len(found) == 1:
            return found
        known = set(self.imports[function.module].values())
        return [
            (module, name)
            for module, name in found
            if module == function.module or (module, name.partition(".")[0]) in known
        ]

    def _called(self, function: Function) -> Iterator[Key]:
        local = _local_names(function)
        for node in walk(function):
            callee = node.func if isinstance(node, ast.Call) else node
            if isinstance(callee, ast.Name):  # a name alone may be handed on, and called there
                found = [] if callee.id in local else self.resolve(function, callee)
            else:
                found = self.resolve(function, node.func) if isinstance(node, ast.Call) else []
            yield from found

    def _named(self, module: str, name: str) -> list[Key]:
        if (module, name) in self.functions:
            return [(module, name)]
        imported = self.imports[module].get(name)
        if imported is None:
            return []
        made = (imported[0], f"{imported[1]}.__init__")
        return [key for key in (imported, made) if key in self.functions]


def read_graph(root: Path = ROOT) -> CallGraph:
    """Parse our packages."""
    functions: dict[Key, Function] = {}
    imports: dict[str, dict[str, tuple[str, str]]] = {}
    methods: defaultdict[str, list[Key]] = defaultdict(list)
    for path in source_files(root):
        module = name_of(path, root)
        tree = ast.parse(path.read_text())
        imports[module] = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        for function in _functions(module, tree, "", None):
            functions[module, function.name] = function
            if function.of_class is not None:
                methods[function.node.name].append((module, function.name))
    return CallGraph(functions, imports, methods)


def source_files(root: Path = ROOT) -> list[Path]:
    return sorted(
        path
        for package in FOLDERS
        for path in (root / package).rglob("*.py")
        if not _EDGES & set(path.relative_to(root).parts)
    )


def is_effect(node: ast.AST) -> bool:
    """A call that changes something remote."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EFFECTS
        and last_name(node.func.value) in REMOTE
    )


def last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _local_names(function: Function) -> set[str]:
    return {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in walk(function)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }


def walk(function: Function) -> Iterator[ast.AST]:
    return ast.walk(function.node)


def _functions(module: str, node: ast.AST, prefix: str, of_class: str | None) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield Function(module, prefix + child.name, child, of_class)
        elif isinstance(child, ast.ClassDef):
            yield from _functions(module, child, f"{prefix}{child.name}.", f"{prefix}{child.name}")
        elif isinstance(child, ast.stmt):  # under TYPE_CHECKING, or in a try
            yield from _functions(module, child, prefix, of_class)


def _closed(start: Iterable[Key], arrows: Mapping[Key, Iterable[Key]]) -> frozenset[Key]:
    found = set(start)
    waiting = list(found)
    while waiting:
        for key in arrows.get(waiting.pop(), ()):
            if key not in found:
                found.add(key)
                waiting.append(key)
    return frozenset(found)
