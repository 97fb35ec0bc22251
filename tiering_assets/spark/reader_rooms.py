"""The modules that sources of messages need, by room: what a worker that reads for them runs. Pure.

Owns: a source plans and reads with the same modules, so these are those of both.
tests/unit/spark/test_build.py follows the imports: none is missing, and none too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

READER_ROOMS: Final[Mapping[str, str]] = {
    "tiering_assets": "",
    "tiering_assets.catalogue": "columns generation pages settled view",
    "tiering_assets.catalogue.facts": "known_ledger read_pages record_facts rows seen_ledger",
    "tiering_assets.cold": (
        "build chunks columns decode entry_heads frames gather joined lockstep opened plain_rows "
        "singles transactions usual"
    ),
    "tiering_assets.cold.values": (
        "avro avro_shape fitted json_text key_value payload_schema primitives protobuf readers typed"
    ),
    "tiering_assets.ground": (
        "day_book effects evidence moments named_records own_policy reasons record_book stack turns"
    ),
    "tiering_assets.lineage": (
        "asked find known_places placed_block places read_entry shown_entry"
    ),
    "tiering_assets.lineage.in_spark": (
        "ledger_frame ledger_parts ledger_source ledger_stream spark_filters table_source "
        "table_spans value_types"
    ),
    "tiering_assets.lineage.messages": (
        "arrivals arrived block_entries decided earlier_pieces from_records hot_entries "
        "listed_ledgers options plan pushed read_messages topic_columns topic_schemas"
    ),
    "tiering_assets.look": "",
    "tiering_assets.look.ledger": "eligibility plan states",
    "tiering_assets.look.topic": "archived_schemas user_topics",
    "tiering_assets.offload_format": (
        "block decoder digests encoder keys layout message_codecs message_decoder message_facts "
        "walker wire_fields"
    ),
    "tiering_assets.offload_format.segments": "block",
    "tiering_assets.quality": (
        "checks expectations_run facts findings index_frame kept_suite ledger_checks ledger_facts "
        "ledger_frame ledger_suites segment_frame segment_suite suites user_suites verdicts"
    ),
    "tiering_assets.records": (
        "broker_models bucket_models codec key_kinds keys models pause_models "
        "scrub_model signature stored stream_models sweep_models writer"
    ),
    "tiering_assets.resources": " ".join(
        (
            "arrow_columns ending errors garbage http_access kept_answers kept_files kept_tables",
            "last_used lots plain_text proto_text quantity settings settings_engines",
            "settings_kinds settings_lineage settings_of_workers settings_places",
            "settings_protocol settings_reading settings_sources settings_stream spark_master sql table_files",
            "table_log table_place table_sessions table_upkeep tables user_cache",
        )
    ),
    "tiering_assets.resources._proto": (
        "BookKeeperDataFormats_pb2 MLDataFormats_pb2 SchemaFormats_pb2"
    ),
    "tiering_assets.resources.bookkeeper": (
        "add_latency address_map agreed_reads batch_body connection digest figures_page frames "
        "ledger ledger_metadata meter placement pool read_streams readable reader runs stored_entry "
        "tail wire_v2"
    ),
    "tiering_assets.resources.metastore": (
        "bookie_registration cursors envelope identity ledger_info ledger_paths ledgers "
        "offload_context store store_uri topic_names topics zookeeper zookeeper_client"
    ),
    "tiering_assets.resources.native": "build core loader",
    "tiering_assets.resources.object_store": (
        "bodies kept_clients meter records s3 s3_client s3_environment s3_errors store"
    ),
    "tiering_assets.resources.pulsar": (
        "activity admin answers broker_stats http offload_policies retention schema_storage topic"
    ),
    "tiering_assets.tasks": (
        "block_body block_memory budget_record copy descriptors point_reads polite_share "
        "politeness ranges rate_budget rates read_back runner worker"
    ),
}
