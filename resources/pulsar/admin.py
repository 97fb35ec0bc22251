"""What tierkeeper asks of a Pulsar broker, over its admin REST API.

Owns: a topic that is not loaded is not loaded by asking. stats, internalStats, unload, trim
and reading an entry load it, and say so; locate answers from broker-stats and bundle ownership
alone. Any doubt there is UNKNOWN, never NOT_LOADED.

Source: Pulsar admin/v2 resources (Brokers, BrokerStats, Namespaces, PersistentTopics), 4.0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from tiering_assets.resources.errors import BrokerError, FormatError
from tiering_assets.resources.pulsar.activity import TopicActivity, parse_topic_stats
from tiering_assets.resources.pulsar.answers import as_object, ensemble_in, settings_in
from tiering_assets.resources.pulsar.broker_stats import BrokerStats
from tiering_assets.resources.pulsar.http import AdminHttp
from tiering_assets.resources.pulsar.offload_policies import (
    EffectiveOffloadPolicies,
    PolicyAnswers,
    merge_offload_policies,
)
from tiering_assets.resources.pulsar.retention import (
    Inactivity,
    Retention,
    parse_inactivity,
    parse_retention,
)
from tiering_assets.resources.pulsar.schema_storage import StoredSchema, parse_schema_answer
from tiering_assets.resources.pulsar.topic import (
    FullTopicName,
    bundle_holds,
    namespace_path,
    parse_topic,
)
from tiering_assets.resources.settings import BrokerSettings

SETTLED_S = 120.0  # broker-stats are up to a minute old, and clocks up to a minute apart

_RUNTIME_CONFIG = "/brokers/configuration/runtime"
_POLICY_QUESTIONS = 6  # besides the broker's own settings


class TopicLoad(StrEnum):
    """LOADED may be up to a minute old; UNKNOWN: look again after a minute before concluding."""

    LOADED = "loaded"
    NOT_LOADED = "not loaded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """Whether a broker has a topic in memory and, where it is known, which: `host:port`.

    `silent` are brokers that were asked and did not tell.
    """

    load: TopicLoad
    broker: str | None = None
    silent: tuple[str, ...] = field(default=(), compare=False)


class BrokerAdmin(Protocol):
    """Topics are full names, `persistent://tenant/namespace/name`; FormatError for others.

    Every method may raise BrokerError; BrokerNotFoundError for a 404, BrokerUnknownError when the
    answer was lost. Messages hold status, path and the broker's reason, never the token.
    """

    def runtime_config(self) -> Mapping[str, str]:
        """The broker's settings by name; broker.conf keys unknown to the broker are not in it."""

    def runtime_configs(self) -> Mapping[str, Mapping[str, str]]:
        """The settings of every live broker, by its `host:port`.

        BrokerError when one of them does not tell. With broker.ask_each off, of the broker that
        answers alone.
        """

    def version(self) -> str:
        """Pulsar's release, such as 4.0.8, of the broker that answers."""

    def list_brokers(self) -> list[str]:
        """`host:port` of each live broker of the cluster, sorted: brokers tell them in any
        order.
        """

    def answers(self, broker: str) -> bool:
        """Whether this one broker, which is or was registered in the cluster, answers now."""

    def namespace_ensemble(self, namespace: str) -> int | None:
        """Bookies of a data ledger by the namespace's persistence policy; None where it sets
        none.
        """

    def topic_ensemble(self, topic: str) -> int | None:
        """The same by the policy in force for the topic. Makes a broker own its bundle."""

    def list_topics(self, namespace: str) -> list[str]:
        """Persistent topics that admin lists, each partition by itself; no system topics."""

    def locate(
        self, topic: str, *, remembered: Sequence[str] = (), quiet_s: float = 0.0
    ) -> TopicPlace:
        """Whether a broker has the topic in memory and which, without loading it.

        Brokers are asked one after the other, so a bundle that moves meanwhile can be missed: what
        depends on NOT_LOADED must itself fail when a broker writes the topic's node.

        `remembered` are brokers that need not be registered any more: one whose session expired may
        go on serving. `quiet_s` is for how long nobody has written the topic's node, read before. A
        broker that loads a topic writes that node, so one that had the topic in memory at any
        moment of that time had it before the time began, and its stats, which are up to a minute
        old, show it once SETTLED_S of it have passed. So an answer without the topic that was given
        in that rest of the time is as good as a new one, and is not asked for again; of a
        remembered broker, whose bundles nobody tells, no other answer proves that it has not the
        topic. Who owns a bundle is asked anew of those registered, as that changes without a write.
        """

    def unload_topic(self, topic: str) -> None:
        """Returns once acknowledged. Loads a topic that is not loaded. Safe to repeat."""

    def activity(self, topic: str) -> TopicActivity:
        """Consumers, delayed messages and transactions by the topic's stats. Loads the topic."""

    def internal_stats(self, topic: str) -> Mapping[str, Any]:
        """The managed ledger as the broker remembers it. Loads the topic."""

    def read_entry(self, topic: str, ledger_id: int, entry_id: int) -> bytes:
        """Message payload of one entry, read through the broker. Loads the topic.

        The payload is decompressed, even where it is encrypted, or is a piece of a message. The
        broker gives no answer where that fails.
        """

    def find_position(self, topic: str, time_ms: int) -> tuple[int, int]:
        """Ledger and entry id of the first entry that was not published before this time.

        Found by halves: the broker has read the head of the entry before it. Loads the topic.
        """

    def retention(self, topic: str) -> Retention:
        """Retention in force. May make a broker own the topic's bundle, and load the topic."""

    def inactivity(self, topic: str) -> Inactivity:
        """What the broker deletes of it while nobody uses it. May make a broker own its bundle."""

    def trim_topic(self, topic: str) -> None:
        """Have its broker apply retention now. Loads the topic. Safe to repeat."""

    def schemas(self, topic: str) -> Mapping[int, StoredSchema]:
        """Schemas since the last deletion, by version. Makes a broker own the topic's bundle."""

    def effective_offload_policies(self, topic: str) -> EffectiveOffloadPolicies:
        """Does not load the topic, but makes a broker own its bundle: ask locate before."""


class HttpBrokerAdmin:
    """BrokerAdmin by HTTP. Threads may share it."""

    def __init__(
        self, settings: BrokerSettings, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._http = AdminHttp(settings)
        self._settings = settings
        self._stats = BrokerStats(self._http, monotonic=monotonic)
        self._cluster_name = ""  # asked once: another cluster's brokers are not found by it

    def close(self) -> None:
        self._http.close()

    def runtime_config(self) -> Mapping[str, str]:
        return settings_in(self._object(_RUNTIME_CONFIG))

    def runtime_configs(self) -> Mapping[str, Mapping[str, str]]:
        if not self._settings.ask_each:
            return {urlsplit(self._settings.admin_url).netloc: self.runtime_config()}
        brokers = self.list_brokers()
        if not brokers:
            raise BrokerError(
                "the broker that answers lists no live broker: it leaves out even itself"
            )
        return {broker: self._config_of(broker) for broker in brokers}

    def _config_of(self, broker: str) -> Mapping[str, str]:
        try:
            found = self._http.json(_RUNTIME_CONFIG, base=self._http.base_of(broker))
        except BrokerError as error:
            raise BrokerError(
                f"broker {broker} does not tell its settings ({error}): it may be the next to serve "
                f"a topic. Where brokers cannot be reached one by one, and all have the same "
                f"settings, set broker.ask_each = false"
            ) from error
        return settings_in(as_object(found, _RUNTIME_CONFIG))

    def version(self) -> str:
        return self._http.send("GET", "/brokers/version").decode(errors="replace").strip()[:100]

    def list_brokers(self) -> list[str]:
        cluster = self._cluster()
        brokers = sorted(self._strings(f"/brokers/{quote(cluster, safe='')}"))
        for broker in brokers:
            self._http.trust(broker)
        return brokers

    def answers(self, broker: str) -> bool:
        self._http.trust(broker)
        try:
            self._http.send("GET", "/brokers/version", base=self._http.base_of(broker))
        except BrokerError:
            return False
        return True

    def namespace_ensemble(self, namespace: str) -> int | None:
        path = f"{namespace_path(namespace)}/persistence"
        return ensemble_in(self._policies(path), path)

    def topic_ensemble(self, topic: str) -> int | None:
        name = parse_topic(topic).whole
        path = f"{name.path}/persistence"
        found = self._policies(path, params={"applied": "true"}, none_on=405)
        if found is None:
            path = f"{name.namespace_path}/persistence"
            found = self._policies(path)
        return ensemble_in(found, path)

    def list_topics(self, namespace: str) -> list[str]:
        return self._strings(namespace_path(namespace).replace("/namespaces/", "/persistent/", 1))

    def locate(
        self, topic: str, *, remembered: Sequence[str] = (), quiet_s: float = 0.0
    ) -> TopicPlace:
        name, cluster = parse_topic(topic), self._cluster()
        brokers = self.list_brokers()
        if not brokers:
            # some broker answered us, so the list is not the truth
            return TopicPlace(TopicLoad.UNKNOWN)
        owner: str | None = None
        silent: list[str] = []
        age_max_s = quiet_s - SETTLED_S
        for broker in brokers:
            try:
                if self._stats.lists(broker, str(name), age_max_s=age_max_s):
                    return TopicPlace(TopicLoad.LOADED, broker)
                if owner is None and self._owns_bundle(cluster, broker, name):
                    owner = broker
            except (BrokerError, FormatError):
                silent.append(broker)  # it may be the owner; another may still say "loaded"
        away = [broker for broker in remembered if broker not in brokers]
        for broker in away:
            self._http.trust(broker)
            has_it = self._stats.of_one_away(broker, str(name), age_max_s=age_max_s)
            if has_it:
                return TopicPlace(TopicLoad.LOADED, broker)
            if has_it is None:
                silent.append(broker)
        settled = quiet_s >= SETTLED_S or not away
        known_idle = owner is None and not silent and settled
        return TopicPlace(
            TopicLoad.NOT_LOADED if known_idle else TopicLoad.UNKNOWN, owner, tuple(silent)
        )

    def unload_topic(self, topic: str) -> None:
        self._http.send("PUT", f"{parse_topic(topic).path}/unload")

    def activity(self, topic: str) -> TopicActivity:
        stats = self._object(f"{parse_topic(topic).path}/stats")
        return parse_topic_stats(stats, topic=topic)

    def internal_stats(self, topic: str) -> Mapping[str, Any]:
        return self._object(f"{parse_topic(topic).path}/internalStats")

    def read_entry(self, topic: str, ledger_id: int, entry_id: int) -> bytes:
        path = f"{parse_topic(topic).path}/ledger/{ledger_id}/entry/{entry_id}"
        return self._http.send("GET", path)

    def find_position(self, topic: str, time_ms: int) -> tuple[int, int]:
        path = f"{parse_topic(topic).path}/messageid/{time_ms}"
        found = self._object(path)
        ledger_id, entry_id = found.get("ledgerId"), found.get("entryId")
        if not isinstance(ledger_id, int) or not isinstance(entry_id, int):
            raise BrokerError(f"GET {path}: expected a message id, found {found!r:.100}")
        return ledger_id, entry_id

    def retention(self, topic: str) -> Retention:
        name, applied = parse_topic(topic).whole, {"applied": "true"}
        path = f"{name.path}/retention"
        policy = self._policies(path, params=applied, none_on=405)
        if policy is None:
            policy = self._policies(f"{name.namespace_path}/retention")
        return parse_retention(policy, self.runtime_config(), topic=topic)

    def inactivity(self, topic: str) -> Inactivity:
        name = parse_topic(topic)
        path, levels = f"{name.whole.path}/inactiveTopicPolicies", name.namespace_path
        policy = self._policies(path, params={"applied": "true"}, none_on=405)
        if policy is None:
            policy = self._policies(f"{levels}/inactiveTopicPolicies")
        minutes = self._number(f"{levels}/subscriptionExpirationTime")
        return parse_inactivity(policy, minutes, self.runtime_config(), topic=topic)

    def trim_topic(self, topic: str) -> None:
        self._http.send("POST", f"{parse_topic(topic).path}/trim")

    def schemas(self, topic: str) -> Mapping[int, StoredSchema]:
        return parse_schema_answer(self._http.json(parse_topic(topic).schemas_path))

    def effective_offload_policies(self, topic: str) -> EffectiveOffloadPolicies:
        name = parse_topic(topic)
        levels = name.namespace_path
        with ThreadPoolExecutor(_POLICY_QUESTIONS, thread_name_prefix="policies") as asking:
            own = asking.submit(self._topic_policies, name, applied=False)
            applied = asking.submit(self._topic_policies, name, applied=True)
            namespace = asking.submit(self._policies, f"{levels}/offloadPolicies")
            lag = asking.submit(self._number, f"{levels}/offloadDeletionLagMs")
            by_size = asking.submit(self._number, f"{levels}/offloadThreshold")
            by_time = asking.submit(
                self._number,
                f"{levels}/offloadThresholdInSeconds",
                none_on=404,  # older brokers do not know the path
            )
            answers = PolicyAnswers(
                broker=self.runtime_config(),
                topic=own.result(),
                namespace=namespace.result(),
                namespace_lag_ms=lag.result(),
                namespace_threshold_bytes=by_size.result(),
                namespace_threshold_seconds=by_time.result(),
                applied=applied.result(),
            )
        return merge_offload_policies(answers, topic=topic)

    # ----- pieces of answers

    def _cluster(self) -> str:
        if not self._cluster_name:
            self._cluster_name = self.runtime_config().get("clusterName", "")
        if not self._cluster_name:
            raise BrokerError("GET /brokers/configuration/runtime: no clusterName in the answer")
        return self._cluster_name

    def _owns_bundle(self, cluster: str, broker: str, topic: FullTopicName) -> bool:
        path = f"/brokers/{quote(cluster, safe='')}/{quote(broker, safe='')}/ownedNamespaces"
        return any(bundle_holds(bundle, topic) for bundle in self._object(path))

    def _topic_policies(self, topic: FullTopicName, *, applied: bool) -> Mapping[str, Any] | None:
        """The policy of the whole topic: brokers refuse to tell it for one partition.

        405 says that topic policies are switched off, so there are none.
        """
        params = {"applied": "true"} if applied else None
        return self._policies(f"{topic.whole.path}/offloadPolicies", params=params, none_on=405)

    def _policies(
        self, path: str, *, params: Mapping[str, str] | None = None, none_on: int | None = None
    ) -> Mapping[str, Any] | None:
        found = self._http.json(path, params=params, none_on=none_on)
        return None if found is None else as_object(found, path)

    def _number(self, path: str, *, none_on: int | None = None) -> int | None:
        found = self._http.json(path, none_on=none_on)
        if found is None:
            return None
        if not isinstance(found, int) or isinstance(found, bool):
            raise BrokerError(f"GET {path}: expected a whole number, found {found!r:.100}")
        return found

    def _object(self, path: str) -> Mapping[str, Any]:
        return as_object(self._http.json(path), path)

    def _strings(self, path: str) -> list[str]:
        found = self._http.json(path)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise BrokerError(f"GET {path}: expected a list of names, found {found!r:.100}")
        return found
