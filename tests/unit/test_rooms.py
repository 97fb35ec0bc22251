"""The arrows between rooms, read from the source: docs/architecture.md explains them.

An import inside a function counts like any other, and needs a line in LAZY to be there at all.
"""

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.rooms import (
    FEATURES,
    FOLDERS,
    GROUND,
    MODULES,
    PACKAGE,
    RESOURCES,
    ROOT,
    WRITTEN,
    feature_pairs,
    imports,
    inside,
    modules_by_folder,
    tree_of,
)

LINES_MAX = 400
MODULES_MAX = 15  # of a folder

# Who may import a framework, by prefix of the module's name.
FRAMEWORKS = {
    "deltalake": (
        "tiering_assets.resources.tables",
        "tiering_assets.resources.table_log",
        "tiering_assets.resources.table_sessions",
        "tiering_assets.resources.table_upkeep",
    ),
    "obstore": (
        "tiering_assets.resources.object_store.s3_bulk",
        "tiering_assets.resources.table_log",
        "tiering_assets.resources.table_place",
    ),
    "openlineage": (
        "tiering_assets.catalogue.openlineage.event_json",
        "tiering_assets.resources.openlineage",
    ),
    "boto3": (
        "tiering_assets.resources.object_store.s3",
        "tiering_assets.resources.devstack.bucket",
    ),
    "botocore": (
        "tiering_assets.resources.object_store.bodies",
        "tiering_assets.resources.object_store.s3",
        "tiering_assets.resources.devstack.bucket",
    ),
    "dagster": (
        "tiering_assets.defs",
        "tiering_assets.definitions",
        "tiering_assets.demo.workspace_runs",
        "tiering_assets.resources.dagster_resources",
    ),
    "pyspark": (
        "tiering_assets.spark",
        "tiering_assets.resources.spark_session",
        "tiering_assets.lineage.in_spark",
    ),
    "great_expectations": ("tiering_assets.quality",),
    "cryptography": ("tiering_assets.records.signature",),
    "prometheus_client": ("tiering_assets.metrics",),
    "kazoo": ("tiering_assets.resources.metastore.zookeeper",),
    "pulsar": (
        "tiering_assets.resources.devstack.traffic",
        "tiering_assets.demo",
        "tiering_assets.notebook.consumer_now",
    ),
    **dict.fromkeys(("duckdb", "nbconvert", "papermill"), ("tiering_assets.notebook",)),
    "matplotlib": ("tiering_assets.notebook", "tiering_assets.defs.explain.chart"),
    "typer": ("tiering_assets.cli",),
    "tiering_assets.resources.dagster_resources": ("tiering_assets.defs",),
    "tiering_assets.resources.devstack": (
        "tiering_assets.resources.devstack",
        "tiering_assets.cli",
        "tiering_assets.demo",
    ),
}

SHARED = {"tiering_assets.resources.devstack.prerequisites"}  # finds Java for Spark and doctor, too

# Values in, values out.
PURE_ROOMS = ("tiering_assets.cold", "tiering_assets.offload_format", "tiering_assets.records")
PURE = {
    RESOURCES: "arrow_columns errors lots plain_text proto_text quantity settings settings_engines settings_kinds "
    "settings_lineage settings_protocol settings_reading settings_stream sql table_files",
    "tiering_assets.resources.bookkeeper": "add_latency address_map batch_body digest frames ledger "
    "ledger_metadata placement readable runs stored_entry wire_v2",
    "tiering_assets.resources.metastore": "bookie_registration cursors envelope ledger_info ledger_paths "
    "offload_context store store_uri topic_names",
    "tiering_assets.resources.native": "core",
    "tiering_assets.resources.object_store": "multipart records s3_environment s3_errors storage_class store",
    "tiering_assets.resources.pulsar": "activity answers offload_policies policy_levels retention "
    "schema_storage topic",
    "tiering_assets.resources._proto": "BookKeeperDataFormats_pb2 MLDataFormats_pb2 SchemaFormats_pb2",
    "tiering_assets.audit": "attempt_sight audit_findings audit_sights chain_audit day_book_audit "
    "object_audit record_audit topic_figures",
    "tiering_assets.audit.report": "contradictions differences facts facts_text html_page "
    "markdown_page page page_parts report_file seal",
    "tiering_assets.audit.scan": "object_damage",
    "tiering_assets.audit.streams": "certified links segment_judge stream_faults stream_place tiling",
    "tiering_assets.automation": "resting standing stuck_rules",
    "tiering_assets.batch": "backfill_rules offload_estimate_rules offload_prefix_rules "
    "offload_status_rules request_count",
    "tiering_assets.catalogue": "columns settled",
    "tiering_assets.catalogue.facts": "changes known_ledger read_pages record_facts rows seen_ledger "
    "work_done",
    "tiering_assets.catalogue.openlineage": "datasets page_events runs_told telling_mark",
    "tiering_assets.catalogue.scan": "plain_rows topic_rows",
    "tiering_assets.catalogue.upkeep": "settlements spans",
    "tiering_assets.change": "disturbance topic_edit",
    "tiering_assets.clean": "expired_rules gone_rules leftovers_rules orphans removal",
    "tiering_assets.cli.terminal": "columns fitting measure table tint words",
    "tiering_assets.doctor": "lifecycle worker_check",
    "tiering_assets.explain": "topic_counts",
    "tiering_assets.explain.reasons": "backlog_reason backlog_rules backlog_topic_rules next_steps",
    "tiering_assets.explain.figures": "lag_figures objectives",
    "tiering_assets.fleet": "questions",
    "tiering_assets.ground": "damage_advice evidence finding moments named_records own_policy reasons",
    "tiering_assets.lineage": "asked block_chain coverage_rules listed placed_block places "
    "proof_rules shown_entry",
    "tiering_assets.lineage.in_spark": "spark_filters table_spans value_types",
    "tiering_assets.lineage.messages": "arrivals decided earlier_pieces pushed read_messages topic_columns",
    "tiering_assets.look.ledger": "eligibility states verification",
    "tiering_assets.look.topic": "bookie_room broker_memory publish_gate",
    "tiering_assets.policy": "admission_rules policy policy_rules selection",
    "tiering_assets.quality": "ledger_facts",
    "tiering_assets.release": "approval caps gate",
    "tiering_assets.retention": "expiry_rules forget_rules retention_load",
    "tiering_assets.schemas": "archive_rules",
    "tiering_assets.scrub": "plan",
    # rows that decisions judge; arithmetic
    "tiering_assets.tasks": "descriptors polite_share rate_budget worker_rows",
}
NOT_PURE = {"tiering_assets.records.schemas"}  # a command that writes files
BY_WHAT_IT_IS_GIVEN = {  # a store that they read and write
    "tiering_assets.audit.record_reader",
    "tiering_assets.copy.bucket_promises",
}
OUTSIDE = set(FRAMEWORKS) | {
    "os",
    "pandas",
    "random",
    "requests",
    "secrets",
    "socket",
    "subprocess",
}
OUTSIDE -= {"cryptography"}  # bytes in, bytes out
OUTSIDE |= {"pathlib", "sys", "tempfile", "threading", "time"}

# Rooms that a room never imports. Everything may import the pure rooms.
EDGES = (
    "tiering_assets.cli",
    "tiering_assets.defs",
    "tiering_assets.definitions",
    "tiering_assets.demo",
    "tiering_assets.notebook",
)
OF_TIERING = tuple(  # all that is not the outside world
    name for name in MODULES if name.count(".") == 1 and name != RESOURCES
)
NEVER = {
    RESOURCES: OF_TIERING,
    "tiering_assets.tasks": (*EDGES, *FEATURES, *GROUND, "tiering_assets.spark"),
    "tiering_assets.quality": (*EDGES, *FEATURES, *GROUND, "tiering_assets.spark"),
    "tiering_assets.spark": (*EDGES, *FEATURES, *GROUND),
    "tiering_assets.ground": (*EDGES, *FEATURES, "tiering_assets.look", "tiering_assets.spark"),
    "tiering_assets.look": (*EDGES, *FEATURES, "tiering_assets.spark"),
    **dict.fromkeys(FEATURES, (*EDGES, "tiering_assets.spark", "tiering_assets.metrics")),
    "tiering_assets.metrics": (*EDGES, "tiering_assets.spark"),
    "tiering_assets.defs": ("tiering_assets.cli", "tiering_assets.demo"),
    "tiering_assets.notebook": (*EDGES[:-1], "tiering_assets.spark"),
}

# Where imports inside functions, and those for types alone, are allowed, and why.
LAZY = {
    "tiering_assets.cli": "a command line that lists its commands must start at once",
    "tiering_assets.defs": "Dagster loads the definitions in every process it starts",
    "tiering_assets.notebook.executed": "papermill and nbconvert are an extra, and take a second",
    "tiering_assets.quality": "importing Great Expectations takes seconds",
    "tiering_assets.spark": "workers and drivers import pyspark and pyarrow where they use them",
    "tiering_assets.tasks.worker": "the actions import the worker that they run in",
    "tiering_assets.doctor.doctor": "each probe is imported when it runs",
    "tiering_assets.catalogue.openlineage.event_json": "it may be missing; then no event is sent",
    "tiering_assets.resources.openlineage": "the same",
    "tiering_assets.resources.tables": "a process that forks later must not have imported delta-rs",
    "tiering_assets.resources.table_upkeep": "the same",
    "tiering_assets.resources.table_sessions": "the same",
    "tiering_assets.resources.spark_session": "importing pyspark takes seconds",
    "tiering_assets.resources.devstack.bucket": "boto3 is needed by one function of a development tool",
    "tiering_assets.resources.devstack.traffic": "the Pulsar client is a development dependency",
    "tiering_assets.resources.native.build": "the C compiler is a development dependency",
    "tiering_assets.resources.proto_build": "the protobuf compiler is a development dependency",
    "tiering_assets.resources.metastore.offload_context": "types only: ledger_info decodes contexts with it",
    "tiering_assets.resources.object_store.s3": "types only: stubs are a development dependency",
    "tiering_assets.resources.object_store.s3_bulk": "it may be missing; then boto3 reads",
    "tiering_assets.resources.table_log": "it may be missing; then delta-rs reads the log",
    "tiering_assets.resources.table_place": "the same",
    "tiering_assets.resources.object_store.s3_client": "types only: stubs are a development dependency",
}

LONG = {
    "tiering_assets.resources.object_store.s3": "the one implementation of the object store's protocol"
}

# Hosts that source and docs may name: ours, those in examples, and identifiers that are no address.
HOSTS = re.compile(r"127\.0\.0\.1|localhost|.*\.example(\.com)?|json-schema\.org|ant\.apache\.org")


def is_pure(name):
    room, _, module = name.rpartition(".")
    listed = module in PURE.get(room, "").split()
    return name not in NOT_PURE and (listed or inside(name, *PURE_ROOMS))


def said(found):
    return sorted({f"{i.importer} imports {i.module}" for i in found})


def test_the_lists_name_modules_that_exist():
    listed = {f"{room}.{module}" for room, names in PURE.items() for module in names.split()}
    rooms = {
        *PURE_ROOMS,
        *NOT_PURE,
        *LAZY,
        *LONG,
        *NEVER,
        *(r for rs in NEVER.values() for r in rs),
    }
    rooms |= {prefix for prefixes in FRAMEWORKS.values() for prefix in prefixes}
    assert sorted((listed | rooms) - set(MODULES)) == []


@pytest.mark.parametrize("room", NEVER)
def test_arrows_between_rooms_never_turn_back(room):
    assert (
        said(i for i in imports() if inside(i.importer, room) and inside(i.module, *NEVER[room]))
        == []
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_stays_in_its_room(framework):
    strays = (
        i
        for i in imports()
        if inside(i.module, framework)
        and i.module not in SHARED
        and not i.importer.startswith(FRAMEWORKS[framework])
    )
    assert said(strays) == []


def test_pure_modules_import_pure_modules_alone():
    pure = [i for i in imports() if is_pure(i.importer)]
    impure = [i for i in pure if inside(i.module, PACKAGE) and not is_pure(i.module)]
    assert len(pure) > 100
    assert said(i for i in impure if i.module != "tiering_assets.resources._proto") == []
    assert said(i for i in pure if inside(i.module, *OUTSIDE)) == []


def test_pure_modules_look_at_no_clock_and_open_no_file():
    looked = [
        f"{name}:{node.lineno}"
        for name in WRITTEN
        if is_pure(name)
        for node in ast.walk(tree_of(name))
        if (
            (isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"})
            and ast.unparse(node.value) in {"datetime", "date", "datetime.datetime"}
        )
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "open")
    ]
    assert looked == []


def test_imports_inside_functions_have_a_reason():
    assert said(i for i in imports() if i.lazy and not inside(i.importer, *LAZY)) == []
    needless = [
        room for room in LAZY if not any(i.lazy and inside(i.importer, room) for i in imports())
    ]
    assert needless == []


def room_of(name):
    """The package of a module; ours and its `resources` hold single modules, too."""
    return name.rpartition(".")[0] if "." in name else name


# Who may know of the day book's pages: who makes a book for a run, and who checks a bucket.
KNOW_PAGES = {
    "tiering_assets.audit",
    "tiering_assets.catalogue",
    "tiering_assets.doctor.day_book",
    "tiering_assets.ground.day_book",
    "tiering_assets.ground.named_records",
    "tiering_assets.ground.record_book",
    "tiering_assets.ground.stack",
    "tiering_assets.records",
}


def test_nothing_is_decided_by_the_day_book():
    """Gates, publications, releases, clean-up and tasks write records, and never see a page."""
    users = {name for name in WRITTEN if name_of_pages(name)}
    assert {name for name in users if not inside(name, *KNOW_PAGES)} == set()
    assert "tiering_assets.ground.record_book" in users


def test_only_the_catalogue_reads_by_the_client_for_many_reads():
    """What is judged, published or deleted is read by the client that is proven."""
    bulk = "tiering_assets.resources.object_store.s3_bulk"
    made = {one.importer for one in imports() if inside(one.module, bulk)}
    assert made == {
        "tiering_assets.catalogue.bulk",
        "tiering_assets.catalogue.upkeep.shard_worker",
    }
    given = {
        one.importer for one in imports() if inside(one.module, "tiering_assets.catalogue.bulk")
    }
    assert given == {
        "tiering_assets.catalogue.post",
        "tiering_assets.catalogue.prove",
        "tiering_assets.catalogue.upkeep.rebuild",
    }


def test_nothing_is_decided_by_the_catalogue():
    """People ask it. No gate, step, task or sensor does."""
    rooms = ("tiering_assets.catalogue", "tiering_assets.lineage")
    asking = {i.importer for i in imports() if inside(i.module, *rooms)}
    assert {name for name in asking if not inside(name, *rooms)} == {
        "tiering_assets.cli.catalogue.catalogue_cmd",
        "tiering_assets.cli.catalogue.upkeep_cmd",
        "tiering_assets.cli.doctor_cmd",
        "tiering_assets.cli.explain.fresh",
        "tiering_assets.cli.lineage.lineage_cmd",
        "tiering_assets.cli.lineage.lineage_coverage_cmd",
        "tiering_assets.cli.lineage.lineage_output",
        "tiering_assets.cli.lineage.topic_read_cmd",
        "tiering_assets.defs.automation.catalogue",
        "tiering_assets.defs.automation.nominated",
        "tiering_assets.defs.automation.retire",
        "tiering_assets.defs.automation.rollover",
        "tiering_assets.defs.automation.stuck",
        "tiering_assets.defs.automation.threshold",
        "tiering_assets.defs.explain.catalogue_assets",
        "tiering_assets.defs.nominated_copies",
        "tiering_assets.fleet.backlog",
        "tiering_assets.fleet.beside",
        "tiering_assets.fleet.by_day",
        "tiering_assets.fleet.ledgers",
        "tiering_assets.fleet.source",
        "tiering_assets.fleet.topic_figures",
        "tiering_assets.fleet.topics",
        "tiering_assets.fleet.work_done",
        "tiering_assets.metrics.collector",
        "tiering_assets.metrics.counters",
        "tiering_assets.metrics.surveyed",
        "tiering_assets.notebook.frames",
        "tiering_assets.notebook.ledger_trail",
        "tiering_assets.notebook.look",
        "tiering_assets.notebook.topic_audit",
        "tiering_assets.notebook.topic_story",
    }


def test_what_moves_bytes_draws_nothing():
    """The package that draws takes a second and 30 MB: of runs, a count of the fleet alone pays."""
    room = "tiering_assets.defs.explain.chart"
    assert {i.importer for i in imports() if inside(i.module, room)} == {
        "tiering_assets.defs.explain.discover_assets"
    }


def test_nothing_waits_for_schemas():
    """Whoever publishes, releases or reads never asks for them to be archived."""
    room = "tiering_assets.schemas"
    asking = {i.importer for i in imports() if inside(i.module, room)}
    assert {name for name in asking if not inside(name, room)} == {
        "tiering_assets.cli.catalogue.catalogue_cmd",
        "tiering_assets.cli.schema_cmd",
        "tiering_assets.defs.automation.catalogue",
    }


def name_of_pages(name):
    """Whether a module imports the day book, or names what a page is."""
    words = {node.id for node in ast.walk(tree_of(name)) if isinstance(node, ast.Name)}
    imported = {one.module for one in imports() if one.importer == name}
    return "tiering_assets.ground.day_book" in imported or "DayBookPage" in words


def test_no_room_imports_itself_by_way_of_others():
    graph: dict[str, set[str]] = {}
    for i in imports():
        ours, theirs = (
            n if room_of(n) in {RESOURCES, PACKAGE} else room_of(n) for n in (i.importer, i.module)
        )
        if i.module in MODULES and ours != theirs:
            graph.setdefault(ours, set()).add(theirs)
    assert len([*TopologicalSorter(graph).static_order()]) > 10  # CycleError names the cycle


def test_features_know_few_others_and_none_that_knows_them():
    pairs = feature_pairs()
    assert len(pairs) <= 30
    assert sorted(pair for pair in pairs if pair[::-1] in pairs) == []


def test_a_feature_shows_which_of_its_modules_are_pure():
    """What stands in no list of pure modules imports something that is not."""
    impure = {
        i.importer
        for i in imports()
        if inside(i.module, *OUTSIDE) or (inside(i.module, PACKAGE) and not is_pure(i.module))
    }
    modules = {n for n in WRITTEN if inside(n, *FEATURES, *GROUND) and "." in room_of(n)}
    unlisted = {n for n in modules if not is_pure(n) and MODULES[n].name != "__init__.py"}
    assert unlisted - impure == BY_WHAT_IT_IS_GIVEN


def is_one_call(function):
    """Whether it only hands on what it was given."""
    told = [
        s
        for s in function.body
        if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    return (
        len(told) == 1
        and isinstance(told[0], ast.Return)
        and isinstance(told[0].value, ast.Call)
        and isinstance(told[0].value.func, ast.Name)
    )


def test_no_module_only_hands_on():
    """One whose functions all return a single call is a door to another room and nothing else."""
    doors = []
    for name in (n for n in WRITTEN if inside(n, *FEATURES, *GROUND)):
        found = [node for node in tree_of(name).body if isinstance(node, ast.FunctionDef)]
        if (
            found
            and all(map(is_one_call, found))
            and not any(isinstance(n, ast.ClassDef) for n in tree_of(name).body)
        ):
            doors.append(name)
    assert doors == []


def test_a_class_has_a_name_of_its_own():
    """One word for one idea; what a schema generated is not ours."""
    named = Counter(
        node.name
        for name in WRITTEN
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in named.items() if count > 1] == []


def test_metrics_are_figures_of_rules_alone():
    found = [i for i in imports() if inside(i.importer, "tiering_assets.metrics")]
    assert (
        said(i for i in found if inside(i.module, *FEATURES, *GROUND) and not is_pure(i.module))
        == []
    )


def test_no_folder_is_a_hall():
    assert {f: count for f, count in modules_by_folder().items() if count > MODULES_MAX} == {}


def test_packages_are_empty():
    assert [n for n, p in MODULES.items() if p.name == "__init__.py" and p.read_bytes()] == []


def test_modules_hold_one_idea():
    long = {n for n, p in WRITTEN.items() if len(p.read_text().splitlines()) > LINES_MAX}
    assert long == set(LONG)


def test_checks_that_protect_data_are_no_asserts():
    """Python drops those when it optimizes."""
    assert [n for n in WRITTEN for x in ast.walk(tree_of(n)) if isinstance(x, ast.Assert)] == []


def texts():
    folders = (
        *FOLDERS,
        "tests",
        "docs",
        "proto",
        "deploy",
        "benchmarks",
        "tools",
    )
    kinds = {".py", ".md", ".proto", ".json", ".yaml", ".toml"}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in kinds and "golden" not in path.parts:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def test_nothing_names_a_folder_of_the_machine_it_was_written_on():
    folders = "|".join(
        re.escape(f"{f}/") for f in {ROOT, ROOT.parent, Path.home()} if f != f.parent
    )
    pattern = re.compile(rf"(?<![\w.:/-])({folders})")
    assert [(str(path), m) for path, text in texts() for m in pattern.findall(text)] == []


def test_source_names_no_host_but_its_own():
    """What is downloaded comes from where the package tools are told to look."""
    found = {
        (name, host)
        for name, path in WRITTEN.items()
        for host in re.findall(r"https?://([A-Za-z][\w.-]*\.[a-z]+)", path.read_text())
        if not HOSTS.fullmatch(host)
    }
    assert sorted(found) == []
