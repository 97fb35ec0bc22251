"""The names of the cluster whose definitions tests load: what they are without any setting."""

from __future__ import annotations

from tiering_assets.defs.shared.names import ClusterNames

CLUSTER = ClusterNames("pulsar")
PARTITION_SET = CLUSTER.partition_set
LEDGER_PARTITIONS = CLUSTER.ledger_partitions

SEALED_LEDGERS = CLUSTER.sealed_ledgers
OFFLOADED_OBJECTS = CLUSTER.offloaded_objects
INDEX_OBJECTS = CLUSTER.index_objects
CERTIFICATES = CLUSTER.certificates
OFFLOAD_CONTEXTS = CLUSTER.offload_contexts
DELETED_BOOKIE_LEDGERS = CLUSTER.deleted_bookie_ledgers
TIERING_BACKLOG = CLUSTER.tiering_backlog
RELEASED_LEDGERS = CLUSTER.released_ledgers
SCRUBBED_LEDGERS = CLUSTER.scrubbed_ledgers
SWEPT_LEAVINGS = CLUSTER.swept_leavings
TOPIC_AUDIT = CLUSTER.topic_audit

READ_BACK_EQUAL = CLUSTER.read_back_equal
INDEX_SUITE = CLUSTER.index_suite
RELEASED_SAFELY = CLUSTER.released_safely
OBJECTIVES_MET = CLUSTER.objectives_met
