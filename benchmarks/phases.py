"""The phases of a run: the stack's own store near, the same farther away, and a second store.

Owns: the broker's offloader and tierkeeper use the same store in every phase. The broker learns of
another one by a restart, on the same bookies; agents are started anew for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.agents import ROOT, AgentError, Child, start_agent
from benchmarks.bench import Bench
from benchmarks.figures import SEAWEED, VERSITY
from benchmarks.meters import seaweed_requests
from benchmarks.versity import Gateway, build
from tiering_assets.ground.signing import make_key
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.devstack.bucket import create_bucket
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.native.loader import SWITCH

FAR_MS = 100
_ENDPOINT = "s3ManagedLedgerOffloadServiceEndpoint"
_LOGS = ROOT / "build" / "bench"


@contextmanager
def near(dev: DevStack, *, agents: Sequence[str], keys: Path) -> Iterator[Bench]:
    """The stack as it is. `agents` may have `spark` and `python` besides those always there.

    A key is made in `keys` for the one that signs.
    """
    with ExitStack() as exits:
        kinds = ("local", "signing", "client", *agents)
        started = _started(exits, _environment(dev), kinds, keys)
        yield _bench(exits, dev, started, store=SEAWEED)


@contextmanager
def far(dev: DevStack, bench: Bench) -> Iterator[Bench]:
    """The first phase's, with the broker and our reader 100 ms away from the store."""
    with ExitStack() as exits:
        address = urlsplit(dev.endpoints.s3_endpoint).netloc
        proxy = exits.enter_context(_child("far_store", address, str(FAR_MS)))
        endpoint = f"http://127.0.0.1:{int(proxy.line())}"
        _restart_broker(dev, endpoint)
        environment = _environment(dev) | {"TIERKEEPER_STORE_ENDPOINT": endpoint}
        started = _started(exits, environment, ("local",))
        yield replace(bench, local=started["local"], servers=roles_of(dev))


@contextmanager
def versity(dev: DevStack, directory: Path) -> Iterator[Bench]:
    """The second store. AbsentError where it cannot be had on this machine."""
    program, ends = build(), dev.endpoints
    with ExitStack() as exits:
        gateway = exits.enter_context(
            Gateway(
                program,
                directory,
                access_key=ends.s3_access_key,
                secret_key=ends.s3_secret_key,
            )
        )
        create_bucket(replace(ends, s3_endpoint=gateway.endpoint))
        _restart_broker(dev, gateway.endpoint)
        environment = _environment(dev) | {"TIERKEEPER_STORE_ENDPOINT": gateway.endpoint}
        started = _started(exits, environment, ("local", "client"))
        bench = _bench(exits, dev, started, store=VERSITY, endpoint=gateway.endpoint)
        yield replace(
            bench,
            counted=gateway.requests,
            servers={**bench.servers, "store": [gateway.pid]},
            second=True,
        )


def roles_of(dev: DevStack) -> dict[str, list[int]]:
    """The stack's pids by role."""
    roles: dict[str, list[int]] = {"broker": [], "bookies": [], "store": [], "metadata": []}
    for server in dev.status():
        if server.pid is None:
            raise AgentError(f"{server.name} does not run")
        name = {"s3": "store", "zookeeper": "metadata"}.get(server.name, server.name)
        roles["bookies" if name.startswith("bookie") else name].append(server.pid)
    return roles


def _bench(
    exits: ExitStack,
    dev: DevStack,
    agents: Mapping[str, Child],
    *,
    store: str,
    endpoint: str = "",
) -> Bench:
    sink = exits.enter_context(_child("sink"))
    settings = dev.settings()
    if endpoint:
        settings = replace(settings, store=replace(settings.store, endpoint=endpoint))
    return Bench(
        endpoints=dev.endpoints,
        stack=exits.enter_context(open_stack(settings)),
        store=store,
        counted=partial(seaweed_requests, dev.endpoints.s3_metrics_url),
        servers=roles_of(dev),
        local=agents["local"],
        python=agents.get("python"),
        signing=agents.get("signing"),
        spark=agents.get("spark"),
        client=agents["client"],
        sink=sink,
        sink_port=int(sink.line()),
        block_bytes=dev.options.block_bytes,
    )


def _started(
    exits: ExitStack,
    environment: Mapping[str, str],
    kinds: Sequence[str],
    keys: Path | None = None,
) -> dict[str, Child]:
    """Agents by kind; `python` and `signing` are local ones with something set."""
    _LOGS.mkdir(parents=True, exist_ok=True)
    special = {"python": {SWITCH: "off"}}
    if keys is not None:
        special["signing"] = _signing(keys)
    return {
        kind: exits.enter_context(
            start_agent(
                "local" if kind in special else kind,
                environment={**environment, **special.get(kind, {})},
                logs=_LOGS,
            )
        )
        for kind in kinds
    }


def _signing(keys: Path) -> dict[str, str]:
    made = make_key(keys)
    return {
        "TIERKEEPER_SIGN_PRIVATE_KEY_FILE": str(made.private),
        "TIERKEEPER_SIGN_PUBLIC_KEY_FILES": str(made.public),
    }


def _child(name: str, *arguments: str) -> Child:
    _LOGS.mkdir(parents=True, exist_ok=True)
    return Child(f"benchmarks.{name}", *arguments, environment={}, log=_LOGS / f"{name}.log")


def _environment(dev: DevStack) -> dict[str, str]:
    return {**dev.environment(), "TIERKEEPER_RELEASE_DELETION_LAG_S": "0"}


def _restart_broker(dev: DevStack, endpoint: str) -> None:
    dev.stop_server("broker")
    dev.start_server("broker", broker_conf={_ENDPOINT: endpoint})
