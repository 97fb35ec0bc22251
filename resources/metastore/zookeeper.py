"""The real metadata store: ZooKeeper, through kazoo.

Owns: a write is sent once. Kazoo's own retry is never used; a connection that dies under a write is
an unknown outcome, not a failure, and a write that timed out ends its session so that nothing of it
can be sent later. Source of the semantics: store.py, ZooKeeper programmer's guide.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from kazoo import exceptions as zk_errors
from kazoo.client import TransactionRequest
from kazoo.handlers.threading import KazooTimeoutError

from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataError,
    MetadataUnknownError,
)
from tiering_assets.resources.metastore.store import READS_AT_ONCE, Node, NodeStat, VersionedPath
from tiering_assets.resources.metastore.store_uri import parse_store_uri
from tiering_assets.resources.metastore.zookeeper_client import close_client, connect_client

# The request may have reached the server: its effect is unknown. kazoo also cancels what it had
# queued with SessionExpired and ConnectionClosed, and cannot say whether that had been sent.
_CONNECTION_ERRORS = (
    zk_errors.ConnectionLoss,
    zk_errors.ConnectionClosedError,
    zk_errors.SessionExpiredError,
    zk_errors.OperationTimeoutError,
    zk_errors.CancelledError,
    KazooTimeoutError,
)
T = TypeVar("T")
_RECONNECT_POLL_S = 0.05
_HALF = READS_AT_ONCE // 2
_NO_VERSION = 2**31 - 1
_CONFLICTS = (
    zk_errors.BadVersionError,
    zk_errors.NoNodeError,
    zk_errors.NodeExistsError,
    zk_errors.NotEmptyError,
)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A read on its way; `answer` is kazoo's."""

    path: str
    session_id: int
    read_at_s: float
    answer: Any


class ZooKeeperStore:
    """A MetadataStore on one ZooKeeper ensemble; one session at a time, safe to share by
    threads.
    """

    def __init__(
        self, uri: str, *, session_timeout_s: float = 10.0, connect_timeout_s: float = 10.0
    ) -> None:
        """Connect.

        Raises:
            SettingsError: the URI is not one of ZooKeeper.
            MetadataError: no session within `connect_timeout_s`.
        """
        self._address = parse_store_uri(uri)
        self._connect_timeout_s = connect_timeout_s
        self._request_timeout_s = session_timeout_s
        self._closed = False
        self._client = connect_client(
            self._address, session_timeout_s=session_timeout_s, connect_timeout_s=connect_timeout_s
        )

    def get(self, path: str) -> Node | None:
        return self._receive(self._ask(path))

    def get_many(self, paths: Iterable[str]) -> Iterator[Node | None]:
        return _overlapped(paths, self._ask, self._receive, give_up_s=self._request_timeout_s)

    def stat_many(self, paths: Iterable[str]) -> Iterator[NodeStat | None]:
        return _overlapped(
            paths, self._ask_stat, self._receive_stat, give_up_s=self._request_timeout_s
        )

    def _ask(self, path: str) -> _Sent:
        session_id = self.session_id()  # before the read: a later session cannot vouch for it
        return _Sent(path, session_id, time.monotonic(), self._client.get_async(path))

    def _ask_stat(self, path: str) -> _Sent:
        session_id = self.session_id()
        return _Sent(path, session_id, time.monotonic(), self._client.exists_async(path))

    def _receive_stat(self, sent: _Sent) -> NodeStat | None:
        found = self._answer(sent.path, sent.answer)
        return None if found is None else _stat(found)

    def _receive(self, sent: _Sent) -> Node | None:
        try:
            data, stat = self._answer(sent.path, sent.answer)
        except zk_errors.NoNodeError:
            return None
        return Node(
            path=sent.path,
            data=data,
            stat=_stat(stat),
            session_id=sent.session_id,
            read_at_s=sent.read_at_s,
        )

    def children(self, path: str) -> list[str]:
        try:
            return sorted(self._read(path, self._client.get_children_async))
        except zk_errors.NoNodeError:
            return []

    def sync(self, path: str) -> None:
        with suppress(zk_errors.NoNodeError):
            self._read(path, self._client.sync_async)

    def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> NodeStat:
        _, stat = self._write(
            path,
            lambda: self._client.create_async(
                path, data, ephemeral=ephemeral, makepath=True, include_data=True
            ),
        )
        return _stat(stat)

    def set(
        self,
        path: str,
        data: bytes,
        *,
        expected_version: int,
        session_id: int | None = None,
        checks: Sequence[VersionedPath] = (),
    ) -> NodeStat:
        _require_version(path, expected_version)
        if checks:
            transaction = self._client.transaction()
            for check in checks:
                _require_version(check.path, check.version)
                transaction.check(check.path, check.version)
            transaction.set_data(path, data, version=expected_version)
            operations = [*checks, VersionedPath(path, expected_version)]
            return _stat(self._commit(transaction, operations, session_id)[-1])
        stat = self._write(
            path,
            lambda: self._client.set_async(path, data, version=expected_version),
            session_id=session_id,
            expected=f"version {expected_version}",
        )
        return _stat(stat)

    def require_writable(self, path: str) -> None:
        # ZooKeeper looks at the ACL before it looks at the version, which no node ever has.
        try:
            self._write(path, lambda: self._client.set_async(path, b"", version=_NO_VERSION))
        except MetadataConflictError:
            return
        except MetadataUnknownError as error:
            raise self._failure(f"no answer whether {path} may be written") from error

    def delete(self, path: str, *, expected_version: int) -> None:
        _require_version(path, expected_version)
        self._write(
            path,
            lambda: self._client.delete_async(path, version=expected_version),
            expected=f"version {expected_version}",
        )

    def check_and_delete(
        self,
        *,
        checks: Sequence[VersionedPath],
        deletes: Sequence[VersionedPath],
        session_id: int | None = None,
    ) -> None:
        operations = [*checks, *deletes]
        if not operations:
            return
        transaction = self._client.transaction()
        for check in checks:
            _require_version(check.path, check.version)
            transaction.check(check.path, check.version)
        for delete in deletes:
            _require_version(delete.path, delete.version)
            transaction.delete(delete.path, delete.version)
        self._commit(transaction, operations, session_id)

    def _commit(
        self,
        transaction: TransactionRequest,
        operations: Sequence[VersionedPath],
        session_id: int | None,
    ) -> list[Any]:
        """The results of all operations; nothing was done if one of them raises."""
        what = f"{operations[0].path} and {len(operations) - 1} more"
        results: list[Any] = self._write(what, transaction.commit_async, session_id=session_id)
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, _CONFLICTS):
                raise MetadataConflictError(
                    f"{operation.path}: expected version {operation.version}, found "
                    f"{_reason(result)}; nothing of {len(operations)} operations was done"
                ) from result
        failures = [result for result in results if isinstance(result, Exception)]
        if failures:
            raise MetadataError(f"{what}: refused ({_reason(failures[0])}); nothing was done")
        return results

    def session_id(self) -> int:
        """Id of the present session; waits while the client reconnects, nothing is sent before."""
        give_up_at_s = time.monotonic() + self._connect_timeout_s
        while not self._closed:
            client_id = self._client.client_id
            if client_id is not None and client_id[0]:
                return int(client_id[0])
            if time.monotonic() >= give_up_at_s:
                raise self._failure(f"no session for {self._connect_timeout_s} s")
            time.sleep(_RECONNECT_POLL_S)
        raise self._failure("this store was closed")

    def close(self) -> None:
        self._closed = True
        close_client(self._client)

    def _read(self, path: str, request: Callable[[str], Any]) -> Any:
        self.session_id()
        return self._answer(path, request(path))

    def _answer(self, path: str, sent: Any) -> Any:
        try:
            return sent.get(timeout=self._request_timeout_s)
        except zk_errors.NoNodeError:
            raise
        except zk_errors.NoAuthError as error:
            raise self._denied(path, "READ", "read") from error
        except _CONNECTION_ERRORS as error:
            raise self._failure(f"connection lost while reading {path}") from error
        except zk_errors.KazooException as error:
            raise self._failure(f"refused to read {path} ({_reason(error)})") from error

    def _write(
        self,
        what: str,
        send: Callable[[], Any],
        *,
        session_id: int | None = None,
        expected: str = "no such node",
    ) -> Any:
        current = self.session_id()
        if session_id is not None and current != session_id:
            raise MetadataConflictError(
                f"{what}: the session of the read ({session_id:#x}) is gone; read again"
            )
        try:
            return send().get(timeout=self._request_timeout_s)
        except _CONFLICTS as error:
            raise MetadataConflictError(
                f"{what}: expected {expected}, found {_reason(error)}; read again"
            ) from error
        except zk_errors.NoAuthError as error:
            raise self._denied(what, "WRITE, CREATE or DELETE", "write") from error
        except _CONNECTION_ERRORS as error:
            if isinstance(error, KazooTimeoutError):
                self._end_session()
            raise MetadataUnknownError(
                f"{what}: ZooKeeper {self._address} did not answer a write "
                f"({_reason(error)}); read again before deciding anything"
            ) from error
        except zk_errors.KazooException as error:
            raise self._failure(f"refused to write {what} ({_reason(error)})") from error

    def _end_session(self) -> None:
        """A write without an answer may still be queued; a closed session sends nothing more."""
        try:
            self._client.stop()
            self._client.start_async()
        except zk_errors.KazooException:  # its thread hangs: better no client than two writers
            self._closed = True

    def rights_of_anyone(self, path: str) -> frozenset[str] | None:
        """Letters of `rwcda` that the node's ACL gives to everybody; None without such a node.

        Reading an ACL needs READ or ADMIN; where we may not even do that there are no rights.
        """
        try:
            acls, _stat = self._read(path, self._client.get_acls_async)
        except zk_errors.NoNodeError:
            return None
        except MetadataError as error:
            if isinstance(error.__cause__, zk_errors.NoAuthError):
                return frozenset()
            raise
        bits = 0
        for acl in acls:
            if (acl.id.scheme, acl.id.id) == ("world", "anyone"):
                bits |= acl.perms
        return frozenset(letter for bit, letter in enumerate("rwcda") if bits >> bit & 1)

    def _denied(self, path: str, right: str, verb: str) -> MetadataError:
        return MetadataError(
            f"ZooKeeper {self._address}: its ACL denies us to {verb} {path}: the right {right} is "
            f"missing. `getAcl {path}` in zkCli.sh shows who has it; grant it to this machine or to "
            f"world:anyone. What is there stays unknown, which is not absent"
        )

    def _failure(self, problem: str) -> MetadataError:
        return MetadataError(
            f"ZooKeeper {self._address}: {problem}; check that it is reachable, then try again"
        )


def _overlapped(
    paths: Iterable[str],
    ask: Callable[[str], _Sent],
    receive: Callable[[_Sent], T],
    *,
    give_up_s: float,
) -> Iterator[T]:
    """Answers in the order of the paths, READS_AT_ONCE of them on their way.

    Half of them are waited for at once: to be woken up for each costs a fifth of the time.
    A connection that dies takes all that was on its way: each is asked for again, alone.
    """

    def received(one: _Sent) -> T:
        try:
            return receive(one)
        except MetadataError:
            return receive(ask(one.path))

    sent: deque[_Sent] = deque()
    for path in paths:
        sent.append(ask(path))
        if len(sent) >= READS_AT_ONCE:
            sent[_HALF - 1].answer.wait(give_up_s)
            for _ in range(_HALF):
                yield received(sent.popleft())
    while sent:
        yield received(sent.popleft())


def _require_version(path: str, version: int) -> None:
    if version < 0:  # -1 would mean "any version" to ZooKeeper
        raise ValueError(f"{path}: a write names the version it expects, got {version}")


def _stat(stat: Any) -> NodeStat:
    return NodeStat(
        version=stat.version,
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
    )


def _reason(error: Exception) -> str:
    return type(error).__name__.removesuffix("Error")
