"""Every setting with its unit, default and reason. Pure values; settings_sources.py reads them in.

The name of a setting is `section.field`; in the environment it is TIERKEEPER_SECTION_FIELD, in a
TOML file it is `field` under `[section]`. A field's help is what `config show` and
docs/settings.md print; `secret` fields are masked everywhere.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field, fields

from pydantic.dataclasses import dataclass

from tiering_assets.resources import settings_kinds as kinds
from tiering_assets.resources.settings_engines import DagsterSettings as DagsterSettings
from tiering_assets.resources.settings_engines import SparkSettings as SparkSettings
from tiering_assets.resources.settings_kinds import CONFIG, DAY, GIB, MIB, setting
from tiering_assets.resources.settings_lineage import OpenLineageSettings as OpenLineageSettings
from tiering_assets.resources.settings_protocol import DisturbSettings as DisturbSettings
from tiering_assets.resources.settings_protocol import EvidenceSettings as EvidenceSettings
from tiering_assets.resources.settings_protocol import PublishSettings as PublishSettings
from tiering_assets.resources.settings_protocol import ReleaseSettings as ReleaseSettings
from tiering_assets.resources.settings_reading import CacheSettings as CacheSettings
from tiering_assets.resources.settings_reading import CatalogueSettings as CatalogueSettings
from tiering_assets.resources.settings_stream import StreamSettings as StreamSettings


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class MetadataSettings:
    store: str = setting(
        "zk:127.0.0.1:2181",
        "store of Pulsar's metadata, its configuration and BookKeeper's metadata, "
        "zk:host:port[,host:port][/chroot]; others are refused",
        kinds.ZOOKEEPER,
    )
    ledgers_root: str = setting("/ledgers", "root of BookKeeper's metadata")
    session_timeout_s: float = setting(10.0, "ZooKeeper session timeout", kinds.TIMEOUT)
    connect_timeout_s: float = setting(10.0, "wait for the first connection", kinds.TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class BookieSettings:
    connect_timeout_s: float = setting(5.0, "wait for a TCP connection to a bookie", kinds.TIMEOUT)
    request_timeout_s: float = setting(15.0, "wait for one answer of a bookie", kinds.TIMEOUT)
    batch_bytes_max: int = setting(
        4 * MIB,
        "largest batch asked of a bookie; it caps at 5 MiB",
        kinds.SIZE.upto(5 * MIB, "bookies refuse larger frames"),
    )
    batches_in_flight: int = setting(
        2, "batches asked ahead: the second buffer", kinds.COUNT.upto(64, "each is a buffer")
    )
    window: int = setting(
        200, "single reads in flight where batch reads cannot be used", kinds.COUNT.upto(100_000)
    )
    password: str = setting("", "ledger password (broker's managedLedgerPassword)", secret=True)
    address_map: str = setting(
        "",
        "where to dial a bookie instead of the address it advertises, in driver and workers: "
        "10.0.0.1:3181=127.0.0.1:13181, bookie-1.internal=127.0.0.1",
    )
    http_port: int = setting(
        0,
        "port of every bookie's HTTP server, with its figures; 0 is the one that each registers",
        kinds.COUNT.upto(65_535, "ports end there", zero=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class StoreSettings:
    endpoint: str = setting(
        "", "S3 endpoint URL; empty means the provider's own", kinds.URL_OR_NONE
    )
    region: str = setting("us-east-1", "region; must equal the broker's")
    bucket: str = setting("", "bucket; must equal the broker's")
    access_key: str = setting(
        "", "access key; empty means the default credential chain", secret=True
    )
    secret_key: str = setting("", "secret key", secret=True)
    connect_timeout_s: float = setting(5.0, "wait for a connection", kinds.TIMEOUT)
    read_timeout_s: float = setting(20.0, "wait for an answer, or its next bytes", kinds.TIMEOUT)
    attempts_max: int = setting(
        5, "tries of one request, the first included", kinds.COUNT.upto(100)
    )
    connections_max: int = setting(
        16, "size of the connection pool of one process", kinds.COUNT.upto(10_000)
    )
    console_url: str = setting(
        "",
        "page of an object in the store's console, with {bucket} and {key}, for links in Dagster; "
        "empty shows its s3:// path",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class BrokerSettings:
    admin_url: str = setting(
        "http://127.0.0.1:8080", "base URL of the broker's admin API", kinds.URL
    )
    token: str = setting("", "bearer token for the admin API", secret=True)
    timeout_s: float = setting(30.0, "wait for an admin answer", kinds.TIMEOUT)
    memory_s: float = setting(
        7 * 86400.0,
        "how long a broker that is no longer registered is still asked whether it serves a "
        "topic. If it does not answer then, it is asked until it does, or until it is "
        "declared gone",
        kinds.AGE,
    )
    ask_each: bool = setting(
        True,
        "ask every live broker for its settings before publish and release; false where only one "
        "address answers and all brokers have the same settings",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class OffloadSettings:
    driver: str = setting("aws-s3", "offload driver name the brokers are configured with")
    block_bytes: int = setting(
        64 * MIB,
        "block size; 5 MiB at least (S3 part minimum); equals the broker's for same bytes",
        kinds.SIZE.upto(
            2 * GIB - 1,
            "S3 refuses smaller parts, and the format has 31 bits for a length",
            least=5 * MIB,
        ),
    )
    read_range_bytes: int = setting(
        8 * MIB,
        "bytes per ranged GET when reading back",
        kinds.SIZE.upto(GIB, "it is held in memory"),
    )
    task_bytes: int = setting(256 * MIB, "work packed into one task", kinds.SIZE.upto(1024 * GIB))
    claim_ttl_s: float = setting(
        600.0,
        "how long a claim on a ledger lives without renewal",
        kinds.DURATION.upto(7 * DAY, "a run that died holds its ledgers so long"),
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class SignSettings:
    private_key_file: str = setting(
        "", "PEM file with the Ed25519 key that signs certificates; only where ledgers are verified"
    )
    public_key_files: str = setting(
        "",
        "PEM files with public keys, separated by commas; where set, release and audit "
        "accept only certificates that one of these keys has signed, see sign.require",
    )
    require: bool = setting(
        True,
        "where sign.public_key_files is set, refuse to release by a certificate that nobody signed, "
        "or another key; with false every byte is read again instead. A wrong signature by one of "
        "our keys is always refused",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class VerifySettings:
    second_replica: str = setting(
        "off",
        "read entries also from another replica than the copy did and compare: off, sample (every "
        "tenth block, and the last) or all",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class QualitySettings:
    suites: str = setting(
        "",
        "JSON files of Great Expectations suites over the columns of docs/quality.md, "
        "separated by commas. A ledger that fails one is held; a suite can only hold a "
        "ledger, never release it",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class ScrubSettings:
    requests_max: int = setting(
        20_000, "requests to the store that one scrub run may make", kinds.COUNT.upto(kinds.MANY)
    )
    bytes_max: int = setting(
        64 * 1024 * MIB,
        "bytes of data objects that one scrub run may read; one block at least",
        kinds.PAYLOAD,
    )
    shallow_every_s: float = setting(
        24 * 3600.0,
        "time between two looks at both objects of a published or released ledger",
        kinds.AGE,
    )
    deep_every_s: float = setting(
        30 * 24 * 3600.0, "time between two readings of every byte of such a ledger", kinds.AGE
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class PolicySettings:
    file: str = setting(
        "", "TOML file with our own policies; empty means ./tiering.toml where that exists"
    )
    terminated_last_ledger: bool = setting(
        False, "also select the last ledger of a terminated topic; no broker offloads it"
    )
    unloaded_topics: bool = setting(
        True,
        "also select ledgers of topics that no broker has loaded; a broker waits for a rollover",
    )
    zero_length_ledgers: bool = setting(
        True, "select ledgers whose entries hold no byte, as a broker's automatic offload does"
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class AutoSettings:
    enabled: bool = setting(
        False, "whether the sensors ask for runs; `tierkeeper auto on` and `auto off` write it"
    )
    interval_s: float = setting(
        30.0, "time between two ticks of a sensor", kinds.DURATION.upto(DAY)
    )
    tick_budget_s: float = setting(
        35.0,
        "length of one tick; what is left is looked at by the next. Dagster ends one after 1 min",
        kinds.DURATION.upto(kinds.MINUTE, "Dagster ends a tick after a minute"),
    )
    batch_ledgers_max: int = setting(
        100,
        "ledgers of one run; more than 200 only where dagster.partition_by is day",
        kinds.COUNT.upto(100_000, "they are in memory"),
    )
    batch_bytes_max: int = setting(
        16 * 1024 * MIB, "bytes of the ledgers of one run; one ledger at least", kinds.PAYLOAD
    )
    runs_unfinished_max: int = setting(
        10,
        "runs of one job, queued or started, at which its sensor waits",
        kinds.COUNT.upto(10_000),
    )
    retry_first_s: float = setting(
        60.0,
        "time until a ledger that a run did not bring further is taken up again, doubled "
        "with each run",
        kinds.DURATION.upto(30 * DAY),
    )
    retry_max_s: float = setting(
        3600.0, "most time until it is taken up again", kinds.DURATION.upto(365 * DAY)
    )
    discover_every_s: float = setting(
        900.0, "time between two counts of the backlog", kinds.DURATION.upto(30 * DAY)
    )
    scrub_every_s: float = setting(
        3600.0, "time between two scrub runs", kinds.DURATION.upto(365 * DAY)
    )
    open_after_s: float = setting(
        5 * 3600.0,
        "an open ledger older than this is reported as stuck; brokers roll over at 4 h",
        kinds.AGE,
    )
    retire_after_s: float = setting(
        7 * 24 * 3600.0,
        "time after its release for which a ledger keeps its partition",
        kinds.AGE,
    )
    webhook_url: str = setting(
        "", "URL that failed runs and stuck ledgers are posted to as JSON", secret=True
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class ObjectiveSettings:
    copy_lag_bytes_max: int = setting(
        0,
        "bytes of all topics that policy wants tiered and that are not; 0 is no objective",
        kinds.PAYLOAD_OR_0,
    )
    copy_lag_age_s_max: float = setting(
        24 * 3600.0,
        "time since the oldest ledger in copy lag was closed; 0 is no objective",
        kinds.AGE_OR_0,
    )
    delete_lag_age_s_max: float = setting(
        24 * 3600.0,
        "time for which the oldest bookie copy is overdue for release; 0 is no objective",
        kinds.AGE_OR_0,
    )
    stuck_max: int = setting(
        0, "ledgers that wait for a person (docs/metrics.md); 0 is no objective", kinds.COUNT_OR_0
    )
    warn_at: float = setting(
        0.8, "share of an objective from which on it is a warning", kinds.NUMBER.upto(1)
    )
    fresh_s: float = setting(
        2 * 3600.0,
        "time without a new tiering_backlog after which Dagster calls it stale",
        kinds.DURATION.upto(kinds.TEN_YEARS, "Dagster looks that often", least=60),
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class BudgetSettings:
    upload_bytes_per_s: int = setting(
        0,
        "bytes per second sent to the store, in any 10 s; 0 is no bound (docs/budgets.md)",
        kinds.RATE_OR_0,
    )
    bookie_read_bytes_per_s: int = setting(
        0, "bytes per second read from bookies, in any 10 s; 0 is no bound", kinds.RATE_OR_0
    )
    store_requests_per_s: int = setting(
        0, "requests per second to the store, in any 10 s; 0 is no bound", kinds.REQUESTS_OR_0
    )
    topic_upload_bytes_per_s: int = setting(
        0, "the same bound of uploads for each topic", kinds.RATE_OR_0
    )
    topic_bookie_read_bytes_per_s: int = setting(
        0, "the same bound of reads from bookies for each topic", kinds.RATE_OR_0
    )
    topic_store_requests_per_s: int = setting(
        0, "the same bound of requests for each topic", kinds.REQUESTS_OR_0
    )
    runs_max: int = setting(
        5,
        "runs, ticks of sensors and commands at once, between which budgets are split; one more "
        "than Dagster's max_concurrent_runs at least",
        kinds.COUNT.upto(10_000),
    )
    bookie_answer_bytes_max: int = setting(
        5_253_120,
        "largest answer of a bookie (its nettyMaxFrameSizeBytes). Each read takes this much "
        "from the budget until its answer is there; under a budget, larger answers are "
        "refused",
        kinds.SIZE.upto(GIB),
    )
    add_latency_max_s: float = setting(
        0.02,
        "p99 of a bookie's adds, as its own page has it. Above it tasks read from the bookie at a "
        "part of their speed, three tenths at least; 0 is no look at the page",
        kinds.DURATION.upto(kinds.HOUR, zero=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class MetricsSettings:
    topics_max: int = setting(
        20,
        "topics with figures of their own in `tierkeeper metrics`, those with most lag; 0 is none",
        kinds.COUNT.upto(1_000_000, "each topic is a time series", zero=True),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All sections. Each is checked when it is made, so that nothing is left to check here."""

    metadata: MetadataSettings = field(default_factory=MetadataSettings)
    bookies: BookieSettings = field(default_factory=BookieSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    offload: OffloadSettings = field(default_factory=OffloadSettings)
    publish: PublishSettings = field(default_factory=PublishSettings)
    disturb: DisturbSettings = field(default_factory=DisturbSettings)
    release: ReleaseSettings = field(default_factory=ReleaseSettings)
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    sign: SignSettings = field(default_factory=SignSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    quality: QualitySettings = field(default_factory=QualitySettings)
    scrub: ScrubSettings = field(default_factory=ScrubSettings)
    catalogue: CatalogueSettings = field(default_factory=CatalogueSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    openlineage: OpenLineageSettings = field(default_factory=OpenLineageSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    auto: AutoSettings = field(default_factory=AutoSettings)
    objectives: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    dagster: DagsterSettings = field(default_factory=DagsterSettings)


SECTIONS = tuple(f.name for f in fields(Settings))
KNOWN = {
    name: kind
    for one in fields(Settings)
    for name, kind in kinds.told_by_name(one.name, one.default_factory).items()
}
