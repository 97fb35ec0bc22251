"""How each server is started and when it is ready: values made from options, ports and directory.

Owns: the same (directory, options, ports, credentials) always give the same command, so a server
can be started again on its own data, also by another process. Memory limits are those that were
tried: a bookie with less direct memory dies under a burst of 100 KiB entries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tiering_assets.resources.devstack.config import (
    HOST,
    bookie_changes,
    broker_changes,
    rewrite_properties,
    s3_identities,
    s3_security,
    zookeeper_conf,
)
from tiering_assets.resources.devstack.options import SHORT_LIVED, StackOptions
from tiering_assets.resources.devstack.prerequisites import find_weed
from tiering_assets.resources.devstack.probes import (
    HTTP_FORBIDDEN,
    HTTP_OK,
    http_answers,
    zookeeper_gives_a_session,
)

# A variable that a shell happens to carry must not change the servers, nor reach their logs.
_DROPPED_PREFIXES = ("PULSAR_", "BOOKIE_", "BOOKKEEPER_", "BK_", "ZK_", "AWS_", "TIERKEEPER_")


_HEALTH_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    signing_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything the servers' commands are made from."""

    directory: Path
    distribution: Path
    options: StackOptions
    ports: Mapping[str, int]
    credentials: Credentials

    @property
    def zookeeper(self) -> str:
        return f"{HOST}:{self.ports['zookeeper']}"

    @property
    def s3_url(self) -> str:
        return f"http://{HOST}:{self.ports['s3']}"

    def log(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server's command. `files` are (path, text) written before it starts, mode 0600."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    cwd: Path
    files: tuple[tuple[Path, str], ...] = field(repr=False)
    is_ready: Callable[[], bool]
    ready_timeout_s: float


def server_of(plan: Plan, name: str) -> Server:
    """Return the server called `name`: s3, zookeeper, bookie1…, broker, broker2…."""
    if name == "s3":
        return _s3(plan)
    if name == "zookeeper":
        return _zookeeper(plan)
    return _broker(plan, name) if name.startswith("broker") else _bookie(plan, name)


def cluster_metadata_command(plan: Plan) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command, and its environment, that is run once on an empty ZooKeeper."""
    store = f"zk:{plan.zookeeper}"
    argv = (
        _pulsar(plan),
        "initialize-cluster-metadata",
        *("--cluster", plan.options.cluster),
        *("--metadata-store", store),
        *("--configuration-metadata-store", store),
        *("--web-service-url", f"http://{HOST}:{plan.ports['broker.web']}"),
        *("--broker-service-url", f"pulsar://{HOST}:{plan.ports['broker']}"),
    )
    return argv, _java_environment(plan, memory="-Xmx128m")


def _s3(plan: Plan) -> Server:
    home = plan.directory / "data" / "s3"
    ports = plan.ports
    flags = {
        "-dir": str(home / "volumes"),
        "-ip": HOST,
        "-ip.bind": HOST,
        "-master.telemetry": "false",
        "-webdav": "false",
        "-admin.ui": "false",
        "-s3.port": str(ports["s3"]),
        "-s3.port.iceberg": "0",
        "-s3.port.lance": "0",
        "-s3.config": str(home / "s3.json"),
        "-s3.autoCreateBucket": "false",
        "-s3.allowDeleteBucketNotEmpty": "false",
        "-master.port": str(ports["s3.master"]),
        "-volume.port": str(ports["s3.volume"]),
        # A bucket takes a volume of its own; by default there are as many as GiB free on the disk.
        "-volume.max": "1000",
        "-filer.port": str(ports["s3.filer"]),
        "-admin.port": str(ports["s3.admin"]),
        # Counts of requests, for the benchmark; a stack of an earlier version has no such port.
        "-metricsPort": str(ports.get("s3.metrics", 0)),
        # Relative to the working directory: a socket's path is limited to 108 bytes.
        "-filer.localSocket": "filer.sock",
        "-s3.localSocket": "s3.sock",
        "-s3.concurrentUploadLimitMB": "256",
        "-s3.readerCacheSizeMB": "64",
    }
    keys = plan.credentials
    identities = s3_identities(access_key=keys.access_key, secret_key=keys.secret_key)
    return Server(
        name="s3",
        argv=(
            str(find_weed()),
            "-logtostderr=true",
            "mini",
            *(f"{flag}={value}" for flag, value in flags.items()),
        ),
        environment=_base_environment() | {"GOMEMLIMIT": "512MiB", "HOME": str(home)},
        cwd=home,
        files=(
            (home / "s3.json", identities),
            (home / "security.toml", s3_security(keys.signing_key)),
        ),
        is_ready=lambda: http_answers(ports["s3"], "/", HTTP_OK, HTTP_FORBIDDEN),
        ready_timeout_s=300.0,
    )


def _zookeeper(plan: Plan) -> Server:
    conf = plan.directory / "conf" / "zookeeper.conf"
    port = plan.ports["zookeeper"]
    text = zookeeper_conf(port=port, data_dir=str(plan.directory / "data" / "zookeeper"))
    return Server(
        name="zookeeper",
        argv=(_pulsar(plan), "zookeeper"),
        environment=_java_environment(plan, memory=f"-Xmx{plan.options.zookeeper_mb}m")
        | {"PULSAR_ZK_CONF": str(conf)},
        cwd=plan.directory,
        files=((conf, text),),
        is_ready=lambda: zookeeper_gives_a_session(port),
        ready_timeout_s=300.0,
    )


def _bookie(plan: Plan, name: str) -> Server:
    conf = plan.directory / "conf" / f"{name}.conf"
    http_port = plan.ports[f"{name}.http"]
    changes = bookie_changes(
        plan.options,
        name,
        zookeeper=plan.zookeeper,
        port=plan.ports[name],
        http_port=http_port,
        data_dir=str(plan.directory / "data" / name),
    )
    environment = _java_environment(plan, memory="-Xms128m -Xmx256m -XX:MaxDirectMemorySize=512m")
    return Server(
        name=name,
        argv=(_pulsar(plan), "bookie"),
        environment=environment | {"PULSAR_BOOKKEEPER_CONF": str(conf)},
        cwd=plan.directory,
        files=((conf, rewrite_properties(_shipped(plan, "bookkeeper.conf"), changes)),),
        is_ready=lambda: http_answers(http_port, "/heartbeat", HTTP_OK),
        ready_timeout_s=600.0,
    )


def _broker(plan: Plan, name: str) -> Server:
    conf = plan.directory / "conf" / f"{name}.conf"
    web_port = plan.ports[f"{name}.web"]
    changes = broker_changes(
        plan.options,
        name,
        zookeeper=plan.zookeeper,
        port=plan.ports[name],
        web_port=web_port,
        s3_url=plan.s3_url,
        nar_dir=str(plan.directory / "tmp"),  # shared: what one broker unpacked serves the other
    )
    # Even with an endpoint of our own the driver asks the public S3 host for the bucket's location
    # before each operation, a hundred times, unless these say otherwise.
    s3_url = changes.get("s3ManagedLedgerOffloadServiceEndpoint") or plan.s3_url
    regions = dict.fromkeys(("us-standard", "us-east-1", plan.options.region), s3_url)
    jvm = " ".join(f"-Djclouds.region.{name}.endpoint={url}" for name, url in regions.items())
    environment = _java_environment(
        plan, memory="-Xms384m -Xmx768m -XX:MaxDirectMemorySize=512m", jvm=jvm, gc="-XX:+UseG1GC"
    )
    return Server(
        name=name,
        argv=(_pulsar(plan), "broker"),
        environment=environment
        | {
            "PULSAR_BROKER_CONF": str(conf),
            "AWS_ACCESS_KEY_ID": plan.credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": plan.credentials.secret_key,
            "AWS_REGION": plan.options.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        },
        cwd=plan.directory,
        files=((conf, rewrite_properties(_shipped(plan, "broker.conf"), changes)),),
        # It writes and reads a message: asked again too early, a slow machine only gets slower.
        is_ready=lambda: http_answers(
            web_port, "/admin/v2/brokers/health", HTTP_OK, timeout_s=_HEALTH_S
        ),
        ready_timeout_s=600.0,
    )


def _pulsar(plan: Plan) -> str:
    return str(plan.distribution / "bin" / "pulsar")


def _shipped(plan: Plan, name: str) -> str:
    return (plan.distribution / "conf" / name).read_text()


def _base_environment() -> dict[str, str]:
    return {
        key: value for key, value in os.environ.items() if not key.startswith(_DROPPED_PREFIXES)
    }


def _java_environment(
    plan: Plan, *, memory: str, jvm: str = "", gc: str = "-XX:+UseSerialGC"
) -> dict[str, str]:
    harmless = "-Dtierkeeper.gclog=off"  # left empty, GC logs fill the disk
    scratch = plan.directory / "tmp"
    soon = SHORT_LIVED if plan.options.short_lived else ""
    extra = " ".join(f"-Djava.io.tmpdir={scratch} -XX:+PerfDisableSharedMem {soon} {jvm}".split())
    return _base_environment() | {
        "PULSAR_LOG_DIR": str(plan.directory / "logs"),
        "PULSAR_LOG_APPENDER": "Console",
        "PULSAR_LOG_IMMEDIATE_FLUSH": "true",  # the last lines are what a failed start is about
        "PULSAR_GC": gc,
        "PULSAR_GC_LOG": harmless,
        "BOOKIE_GC_LOG": harmless,
        "PULSAR_MEM": memory,
        "BOOKIE_MEM": memory,
        "PULSAR_EXTRA_OPTS": extra,
    }
