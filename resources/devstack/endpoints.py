"""Where a stack's servers listen, and the same as tierkeeper's settings and environment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from tiering_assets.resources.devstack.config import HOST
from tiering_assets.resources.devstack.servers import Plan
from tiering_assets.resources.settings import (
    SECTIONS,
    BrokerSettings,
    MetadataSettings,
    OffloadSettings,
    Settings,
    StoreSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """`bookies` and `bookie_http` are keyed by bookie id. Without a broker its URLs answer
    nobody.
    """

    zookeeper: str
    bookies: Mapping[str, tuple[str, int]]
    bookie_http: Mapping[str, tuple[str, int]]
    bookie_names: Mapping[str, str]  # bookie id -> server name, for stop_server()
    admin_url: str  # of the first broker, as is service_url
    service_url: str
    broker_web: Mapping[str, str]  # server name -> host:port, as brokers name each other
    s3_endpoint: str
    s3_metrics_url: str
    s3_bucket: str
    s3_region: str
    s3_access_key: str
    s3_secret_key: str = field(repr=False)


def endpoints_of(plan: Plan) -> Endpoints:
    """Return the endpoints of a planned stack."""
    names = {
        f"{HOST}:{plan.ports[name]}": name
        for name in plan.options.server_names()
        if name.startswith("bookie")
    }
    return Endpoints(
        zookeeper=plan.zookeeper,
        bookies={bookie: (HOST, plan.ports[name]) for bookie, name in names.items()},
        bookie_http={bookie: (HOST, plan.ports[f"{name}.http"]) for bookie, name in names.items()},
        bookie_names=names,
        admin_url=f"http://{HOST}:{plan.ports['broker.web']}",
        service_url=f"pulsar://{HOST}:{plan.ports['broker']}",
        broker_web={
            name: f"{HOST}:{plan.ports[f'{name}.web']}" for name in plan.options.broker_names()
        },
        s3_endpoint=plan.s3_url,
        s3_metrics_url=f"http://{HOST}:{plan.ports.get('s3.metrics', 0)}/metrics",
        s3_bucket=plan.options.bucket,
        s3_region=plan.options.region,
        s3_access_key=plan.credentials.access_key,
        s3_secret_key=plan.credentials.secret_key,
    )


def settings_of(plan: Plan) -> Settings:
    """Return tierkeeper's settings for this stack: defaults but for what the stack decides."""
    ends = endpoints_of(plan)
    return Settings(
        metadata=MetadataSettings(store=f"zk:{ends.zookeeper}"),
        store=StoreSettings(
            endpoint=ends.s3_endpoint,
            region=ends.s3_region,
            bucket=ends.s3_bucket,
            access_key=ends.s3_access_key,
            secret_key=ends.s3_secret_key,
        ),
        broker=BrokerSettings(admin_url=ends.admin_url),
        offload=OffloadSettings(block_bytes=plan.options.block_bytes),
    )


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the TIERKEEPER_* variables that give these settings; defaults are left out."""
    variables: dict[str, str] = {}
    plain = Settings()
    for section in SECTIONS:
        chosen, default = getattr(settings, section), getattr(plain, section)
        for item in fields(chosen):
            value = getattr(chosen, item.name)
            if value != getattr(default, item.name):
                variables[f"TIERKEEPER_{section}_{item.name}".upper()] = str(value)
    return variables


def environment_script(variables: Mapping[str, str]) -> str:
    """Return a shell script that exports the variables."""
    return "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())
