"""Where each record lives below `tierkeeper/<instance>/`.

Owns: no key contains `-ledger-`, so a broker never mistakes a record for one of its objects, and
the keys of one ledger share a prefix, so that one listing finds its whole history. Where the newest
is looked for, keys count down: pages of the day book, segments of a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import sha256
from uuid import UUID

PROBES = "tierkeeper/probe/"  # of no instance: what a doctor tries the store with


def topic_hash(ml_name: str) -> str:
    """Stable short name of a managed ledger; names may be longer than a key should be."""
    return sha256(ml_name.encode()).hexdigest()[:32]


def namespace_of(ml_name: str) -> str:
    """`tenant/namespace` of a managed-ledger name (legacy names: `tenant/cluster/namespace`)."""
    return ml_name.rsplit("/", 2)[0]


def claim(ledger_id: int) -> str:
    return f"claims/{ledger_id}.json"


def claimed_by(key: str) -> int:
    """The ledger that a claim's key names."""
    return int(key.removeprefix("claims/").removesuffix(".json"))


PUBLICATIONS = "publications/"
FAILURES = "failures/"
RELEASES = "releases/"
DISTURBANCES = "disturbances/"
LOADS = "loads/"
BEGUN_RELEASES = "begun-releases/"


def failure(ledger_id: int) -> str:
    return f"{FAILURES}{ledger_id}.json"


def attempt(ledger_id: int, uid: UUID) -> str:
    return f"attempts/{ledger_id}/{uid}.json"


def attempts_of(ledger_id: int) -> str:
    return f"attempts/{ledger_id}/"


def certificate(ledger_id: int, uid: UUID) -> str:
    return f"certificates/{ledger_id}/{uid}.json"


def certificates_of(ledger_id: int) -> str:
    return f"certificates/{ledger_id}/"


def quarantine(ledger_id: int, uid: UUID) -> str:
    return f"quarantines/{ledger_id}/{uid}.json"


def outcome(ledger_id: int, uid: UUID) -> str:
    return f"outcomes/{ledger_id}/{uid}.json"


def pair_of(key: str) -> tuple[int, UUID]:
    """Ledger id and attempt of a record key that ends in `<ledger id>/<uuid>.json`."""
    ledger_id, name = key.split("/")[-2:]
    return int(ledger_id), UUID(name.removesuffix(".json"))


def swept(ledger_id: int, uid: UUID) -> str:
    return f"sweeps/{ledger_id}/{uid}.json"


def leftover(ledger_id: int, uid: UUID) -> str:
    return f"leftovers/{ledger_id}/{uid}.json"


def sweep_intent(ledger_id: int, uid: UUID) -> str:
    return f"sweep-intents/{ledger_id}/{uid}.json"


REMOVALS = "removals/"


def removal(ledger_id: int, uid: UUID) -> str:
    return f"{REMOVALS}{ledger_id}/{uid}.json"


def expired_plan(digest: str) -> str:
    return f"expired-plans/{digest}.json"


FORGET_PLANS = "forget-plans/"


def forget_plan(digest: str) -> str:
    return f"{FORGET_PLANS}{digest}.json"


def publications_of(ml_name: str) -> str:
    return f"{PUBLICATIONS}{topic_hash(ml_name)}/"


def publication(ml_name: str, number: int) -> str:
    """Ten digits, so that a listing comes in the order of writing."""
    return f"{publications_of(ml_name)}{number:010d}.json"


def releases_of(ledger_id: int) -> str:
    return f"{RELEASES}{ledger_id}/"


INTENT_SUFFIX = ".intent.json"


def release_intent(ledger_id: int, uid: UUID) -> str:
    return f"{RELEASES}{ledger_id}/{uid}{INTENT_SUFFIX}"


def release(ledger_id: int, uid: UUID) -> str:
    return f"{RELEASES}{ledger_id}/{uid}.json"


def is_release(key: str) -> bool:
    """Of a key below `releases/`: a release, and not the intent that stands before it."""
    return not key.endswith(INTENT_SUFFIX)


def canary(ml_name: str) -> str:
    return f"canaries/{topic_hash(namespace_of(ml_name))}.json"


def filed_in(folder: str, hour: datetime) -> str:
    """What is counted by the hour is filed by the store's clock: one listing from there on
    counts.
    """
    return f"{folder}{hour:%Y-%m-%dT%H}/"


def disturbance(hour: datetime, ml_name: str, broker: str | None, uid: UUID) -> str:
    return f"{filed_in(DISTURBANCES, hour)}{topic_hash(ml_name)}/{uid}{by_broker(broker)}"


def topic_hash_of(key: str) -> str:
    """The topic's hash in the key of a disturbance or load."""
    return key.split("/")[-2]


def load(hour: datetime, ml_name: str, uid: UUID) -> str:
    """A load of an idle topic, apart from reloads: it costs no client."""
    return f"{filed_in(LOADS, hour)}{topic_hash(ml_name)}/{uid}.json"


def begun_release(hour: datetime, ledger_id: int, uid: UUID) -> str:
    """Filed apart from what is kept of a ledger: it counts for an hour and no longer."""
    return f"{filed_in(BEGUN_RELEASES, hour)}{ledger_id}.{uid}.json"


def by_broker(broker: str | None) -> str:
    """How the keys of one broker's disturbances end."""
    return f".{sha256((broker or '').encode()).hexdigest()[:16]}.json"


def scrub(ledger_id: int, uid: UUID, what: str) -> str:
    """`what` is `shallow` or `deep` (the newest good one), `partial`, or `failed`.

    One listing of `scrubs/` so tells when each attempt was last verified, and which one is broken.
    """
    return f"scrubs/{ledger_id}/{uid}.{what}.json"


DAMAGE = "damage/"


def damage(ledger_id: int, uid: UUID) -> str:
    """Of copies that brokers made; those of ours are quarantined."""
    return f"{DAMAGE}{ledger_id}/{uid}.json"


def broker_copy(ledger_id: int, uid: UUID) -> str:
    return f"broker-copies/{ledger_id}/{uid}.json"


def hold(ledger_id: int) -> str:
    return f"holds/{ledger_id}.json"


def bucket_proof(bucket: str) -> str:
    """Of one bucket: records that were copied to another prove nothing of that."""
    return f"bucket-proofs/{sha256(bucket.encode()).hexdigest()[:32]}.json"


HOLD_ALL = "holds/all.json"
BUDGET = "budgets/current.json"


def topic_hold(ml_name: str) -> str:
    return f"holds/topics/{topic_hash(ml_name)}.json"


def namespace_hold(namespace: str) -> str:
    return f"holds/namespaces/{topic_hash(namespace)}.json"


def hold_lift(uid: UUID) -> str:
    return f"hold-lifts/{uid}.json"


PAUSE_ALL = "pauses/all.json"


def topic_pause(ml_name: str) -> str:
    return f"pauses/topics/{topic_hash(ml_name)}.json"


def namespace_pause(namespace: str) -> str:
    return f"pauses/namespaces/{topic_hash(namespace)}.json"


def pause_lift(uid: UUID) -> str:
    return f"pause-lifts/{uid}.json"


def release_plan(digest: str) -> str:
    return f"plans/{digest}.json"


RUN_BATCHES = "run-batches/"


def run_batch(digest: str) -> str:
    return f"{RUN_BATCHES}{digest}.json"


DAY_BOOK = "day-book/"
PAGES_MAX = 10**19 - 1


def page(number: int) -> str:
    """Counted down, so that a listing begins with the newest page: one request finds it."""
    return f"{DAY_BOOK}{PAGES_MAX - number:019d}.json"


def page_number(key: str) -> int:
    """The number of the page that a key names."""
    return PAGES_MAX - int(key.removeprefix(DAY_BOOK).removesuffix(".json"))


SCHEMAS = "schemas/"


def schemas_of(ml_name: str) -> str:
    """Of a whole topic: partitions share its schemas."""
    return f"{SCHEMAS}{topic_hash(ml_name)}/"


def topic_schema(ml_name: str, incarnation: int, version: int) -> str:
    """A topic that was made again counts its versions from 0 again, under another incarnation."""
    return f"{schemas_of(ml_name)}{incarnation}.{version}.json"


def schema_version_of(key: str) -> tuple[int, int]:
    """Incarnation and version that the key of a topic's schema names."""
    incarnation, version, _json = key.rpartition("/")[2].split(".")
    return int(incarnation), int(version)


BROKERS_SEEN = "brokers/seen.json"
BROKERS_GONE = "brokers-gone/"


def broker_gone(uid: UUID) -> str:
    return f"{BROKERS_GONE}{uid}.json"


UNDOS = "undos/"
_CONFIRMED = ".confirmed.json"


def undos_of(ml_name: str) -> str:
    return f"{UNDOS}{topic_hash(ml_name)}/"


def undo(ml_name: str, uid: UUID) -> str:
    return f"{undos_of(ml_name)}{uid}.json"


def undo_confirmed(undo_key: str) -> str:
    """Beside the undo, so that one listing tells which of them are confirmed."""
    return f"{undo_key.removesuffix('.json')}{_CONFIRMED}"


def unconfirmed_undos(listed: Iterable[str]) -> list[str]:
    """Of keys below `undos/`: the undos without a confirmation."""
    found = {*listed}
    undos = (key for key in found if not key.endswith(_CONFIRMED))
    return sorted(key for key in undos if undo_confirmed(key) not in found)


STREAMS = "streams/"
OPENED = "opened.json"
LINK = ".link.json"
OFFLOADED = ".offloaded.json"
GIVEN_UP = ".given-up.json"
ATTEMPTS, _FAILED = ".attempts/", ".failed/"
_NUMBER_MAX, _WHICH_MAX = 10**10 - 1, 10**4 - 1


def streams_of(ml_name: str, ml_czxid: int) -> str:
    """Of a topic as it is in its node of that creation id; one that was made again has others."""
    return f"{STREAMS}{topic_hash(ml_name)}/{ml_czxid:019d}."


def stream_name(ml_czxid: int, which: int) -> str:
    """Of the topic's stream number `which`, from 1 on."""
    return f"{ml_czxid:019d}.{_WHICH_MAX - which:04d}"


def which_stream(stream: str) -> int:
    """The number in a stream's name."""
    return _WHICH_MAX - int(stream.partition(".")[2])


def of_stream(ml_name: str, stream: str) -> str:
    return f"{STREAMS}{topic_hash(ml_name)}/{stream}/"


def stream_opened(ml_name: str, stream: str) -> str:
    return f"{of_stream(ml_name, stream)}{OPENED}"


def of_segment(ml_name: str, stream: str, number: int) -> str:
    """What the keys of everything about one segment begin with."""
    return segment_within(of_stream(ml_name, stream), number)


def segment_within(stream_prefix: str, number: int) -> str:
    """The same where the stream is known by what its keys begin with."""
    return f"{stream_prefix}{_NUMBER_MAX - number:010d}"


def stream_link(ml_name: str, stream: str, number: int) -> str:
    """Of the assignment of that segment, or of the stream's end where that would be it."""
    return f"{of_segment(ml_name, stream, number)}{LINK}"


def segment_offloaded(ml_name: str, stream: str, number: int) -> str:
    return f"{of_segment(ml_name, stream, number)}{OFFLOADED}"


def segment_given_up(ml_name: str, stream: str, number: int) -> str:
    return f"{of_segment(ml_name, stream, number)}{GIVEN_UP}"


def segment_attempt(ml_name: str, stream: str, number: int, uid: UUID) -> str:
    return f"{of_segment(ml_name, stream, number)}{ATTEMPTS}{uid}.json"


def segment_failed(ml_name: str, stream: str, number: int, uid: UUID) -> str:
    return f"{of_segment(ml_name, stream, number)}{_FAILED}{uid}.json"


def stream_and_rest(key: str) -> tuple[str, str]:
    """The stream that a key below `streams/` is of, and what the key says within it."""
    _streams, _topic, stream, rest = key.split("/", 3)
    return stream, rest


def segment_number(rest: str) -> int | None:
    """The segment that a key says something of, by its rest within the stream."""
    digits = rest.partition(".")[0]
    return _NUMBER_MAX - int(digits) if digits.isdecimal() else None


def attempts_in(rests: Iterable[str]) -> Iterator[UUID]:
    """The attempts that keys of a segment are of, by their rests within the stream."""
    return _uids(rests, ATTEMPTS)


def failed_in(rests: Iterable[str]) -> Iterator[UUID]:
    """Those of them that ended badly."""
    return _uids(rests, _FAILED)


def _uids(rests: Iterable[str], folder: str) -> Iterator[UUID]:
    named = (rest.partition(folder) for rest in rests)
    return (UUID(name.removesuffix(".json")) for _number, found, name in named if found)
