"""Reads what Pulsar's own policies say of a topic: from a broker, or what is left without one.

Owns: one reading. Broker settings and each namespace are asked once per reader, so a tick over many
topics makes two or three requests a topic; who wants fresh answers opens a new reader. Without a
broker the namespace comes from the metadata store's `/admin/policies/<tenant>/<namespace>`, and the
topic's own level, which lives in a system topic that only brokers read, is unknown, never empty.

Asking a topic's level makes a broker own its bundle, so locate says "unknown" for a minute: not to
be asked where steps rely on a topic that is not loaded. A broker that comes to own a namespace's
first bundle reads its system topic `__change_events`, and that lookup loads every topic of that
topic's bundle, each with a new ledger (PulsarService.loadNamespaceTopics, seen with 4.0.8). So
whoever must change nothing reads with `loads_nothing`, which asks a topic's level only where a
broker owns its bundle already.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from tiering_assets.resources.errors import BrokerError, BrokerNotFoundError, FormatError
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.pulsar.http import AdminHttp
from tiering_assets.resources.pulsar.offload_policies import merge_offload_policies
from tiering_assets.resources.pulsar.policy_levels import (
    PolicyLevel,
    PulsarLevels,
    load_json,
    parse_broker,
    parse_namespace,
    parse_offload,
    parse_topic_level,
)
from tiering_assets.resources.pulsar.topic import FullTopicName, bundle_holds, parse_topic
from tiering_assets.resources.settings import BrokerSettings

POLICIES_ROOT = "/admin/policies"
RUNTIME_CONFIG = "/brokers/configuration/runtime"
NOT_ASKED = "not asked"
NOT_OWNED = (
    "not asked: no broker owns the topic's bundle, and asking would have one load topics; "
    "--ask-topics asks all the same"
)
_NO_TOPIC_POLICIES = 405  # topicLevelPoliciesEnabled=false


def was_not_asked(why: str) -> bool:
    """Whether a level is unknown because nobody wanted to ask it: that is no outage."""
    return why.startswith(NOT_ASKED)


class PolicyReader:
    """Levels of any number of topics. Not shared between threads, as its session is not.

    `store` is read only when the broker does not answer. With `loads_nothing` a topic's level stays
    unknown unless a broker owns its bundle.
    """

    def __init__(
        self, settings: BrokerSettings, store: MetadataStore, *, loads_nothing: bool = False
    ) -> None:
        self._http = AdminHttp(settings)
        self._store = store
        self._config: Mapping[str, str] | None = None
        self._away: str | None = None  # why there are no answers, once it is known
        self._namespaces: dict[str, PolicyLevel] = {}
        self._loads_nothing = loads_nothing
        self._brokers: list[str] = []
        self._bundles: list[str] | None = None

    def close(self) -> None:
        self._http.close()

    def read(self, topic: str, *, ask_topic: bool = True) -> PulsarLevels:
        """What each level says of `persistent://tenant/namespace/name`.

        Without `ask_topic` the topic's own level stays unknown, and no bundle gets an owner.

        Raises:
            FormatError: an answer or node is no policy, or the name is a legacy one.
            BrokerNotFoundError: neither the broker nor the metadata store has the namespace.
            BrokerError: the broker's own merge contradicts what the levels say.
            MetadataError: the broker is away and the metadata store failed, too.
        """
        try:
            name = parse_topic(topic)
        except FormatError as error:
            raise FormatError(f"{error}: its policies cannot be read") from None
        config = self._runtime_config()
        namespace = self._namespace(name, from_store=config is None)
        if config is None:
            away = self._away or ""
            return PulsarLevels(
                topic=None,
                namespace=namespace,
                broker=None,
                read_from="metadata store",
                unknown={"topic": away, "broker": away},
            )
        broker = parse_broker(config, f"GET {RUNTIME_CONFIG}")
        if not ask_topic or (self._loads_nothing and not self.owned(topic)):
            return PulsarLevels(
                topic=None,
                namespace=namespace,
                broker=broker,
                broker_config=config,
                unknown={"topic": NOT_OWNED if ask_topic else NOT_ASKED},
            )
        try:
            own, applied = self._topic(name)
        except BrokerError as error:
            return PulsarLevels(
                topic=None,
                namespace=namespace,
                broker=broker,
                broker_config=config,
                unknown={"topic": str(error)},
            )
        levels = PulsarLevels(
            topic=own, namespace=namespace, broker=broker, broker_config=config, applied=applied
        )
        merge_offload_policies(levels.answers(), topic=topic)  # a contradiction is told here
        return levels

    def owned(self, topic: str) -> bool:
        """Whether a broker is known to own the topic's bundle. Asked once per reader; owns
        nothing.
        """
        name, config = parse_topic(topic), self._runtime_config()
        if config is None:
            return False
        if self._bundles is None:
            cluster = quote(config.get("clusterName", ""), safe="")
            self._bundles = []
            for broker in self._brokers:
                path = f"/brokers/{cluster}/{quote(broker, safe='')}/ownedNamespaces"
                with suppress(BrokerError, FormatError):  # who does not tell is not known to own
                    found = self._json(path)
                    self._bundles += found if isinstance(found, dict) else []
        with suppress(FormatError):
            return any(bundle_holds(bundle, name) for bundle in self._bundles)
        return False

    # ----- one level each

    def _runtime_config(self) -> Mapping[str, str] | None:
        """The broker's settings, or None when no broker tells them."""
        if self._config is None and self._away is None:
            try:
                found = self._json(RUNTIME_CONFIG)
                if not isinstance(found, dict):
                    raise FormatError(f"GET {RUNTIME_CONFIG}: expected a JSON object")
                self._config = {k: str(v) for k, v in found.items() if v is not None}
                self._trust_brokers(self._config.get("clusterName", ""))
            except BrokerError as error:
                self._config, self._away = None, str(error)
        return self._config

    def _trust_brokers(self, cluster: str) -> None:
        """Topics are answered by the owner of their bundle, and it wants the token, too."""
        brokers = self._json(f"/brokers/{quote(cluster, safe='')}")
        self._brokers = [str(one) for one in brokers] if isinstance(brokers, list) else []
        for broker in self._brokers:
            self._http.trust(broker)

    def _namespace(self, name: FullTopicName, *, from_store: bool) -> PolicyLevel:
        namespace = f"{name.tenant}/{name.namespace}"
        if namespace not in self._namespaces:
            read = self._namespace_node if from_store else self._namespace_answer
            self._namespaces[namespace] = read(name, namespace)
        return self._namespaces[namespace]

    def _namespace_answer(self, name: FullTopicName, namespace: str) -> PolicyLevel:
        return parse_namespace(self._json(name.namespace_path), f"namespace {namespace}")

    def _namespace_node(self, name: FullTopicName, namespace: str) -> PolicyLevel:
        path = f"{POLICIES_ROOT}/{name.tenant}/{name.namespace}"
        node = self._store.get(path)
        if node is None:
            raise BrokerNotFoundError(
                f"namespace {namespace}: the broker is away, and the metadata store has no {path}"
            )
        return parse_namespace(load_json(node.data, path), path)

    def _topic(self, name: FullTopicName) -> tuple[PolicyLevel, Mapping[str, Any]]:
        """The whole topic's own level, as brokers refuse to tell it for one partition."""
        path = name.whole.path
        offload = self._own(f"{path}/offloadPolicies")
        level = parse_topic_level(
            offload, self._own(f"{path}/retention"), self._own(f"{path}/messageTTL"), str(name)
        )
        applied = self._own(f"{path}/offloadPolicies", params={"applied": "true"})
        return level, parse_offload(applied, f"{name}: offloadPolicies applied")

    def _own(self, path: str, *, params: Mapping[str, str] | None = None) -> Any:
        """What is set; None where nothing is, topic policies are off, or there is no such topic."""
        try:
            return self._json(path, params=params, none_on=_NO_TOPIC_POLICIES)
        except BrokerNotFoundError:
            return None

    def _json(
        self, path: str, *, params: Mapping[str, str] | None = None, none_on: int | None = None
    ) -> Any:
        body = self._http.send("GET", path, params=params, none_on=none_on)
        return load_json(body, f"GET {path}") if body.strip() else None
