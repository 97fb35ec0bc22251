"""The real command as a process of its own against the real servers, and what it says when one is
away.

Every claim of the command is checked by somebody else: another S3 client, the broker's own reading
of all messages, or the metadata store.
"""

import json
import uuid
from hashlib import sha256

import pytest

from tests.support.cli_shell import Shell
from tiering_assets.resources.devstack.bucket import s3_client
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.ports import choose_ports
from tiering_assets.resources.devstack.traffic import TopicSpec, consume_all, produce, seal
from tiering_assets.resources.errors import (
    BrokerError,
    LedgerNotFoundError,
    MetadataError,
    ObjectNotFoundError,
    ObjectStoreError,
    RefusedError,
    SettingsError,
)

pytestmark = [pytest.mark.stack, pytest.mark.slow]

SPEC = TopicSpec(topic="public/default/by-hand", messages=3000, payload_bytes=4096)
LAG = {"TIERKEEPER_RELEASE_DELETION_LAG_S": "1"}


@pytest.fixture(scope="module")
def tierkeeper(stack, tmp_path_factory):
    return Shell(stack, tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def sent(endpoints):
    content = produce(endpoints, SPEC)
    seal(endpoints, SPEC)
    assert (
        consume_all(endpoints, SPEC) == content
    )  # loads it again: the last ledger is listed closed
    return content


@pytest.fixture(scope="module")
def s3(endpoints):
    return s3_client(endpoints)


@pytest.mark.parametrize(
    "words", [("ledger", "list"), ("topic", "backlog"), ("ledger", "release", "--due", "--plan")]
)
def test_what_judges_is_not_imported_where_nothing_is_judged(tierkeeper, sent, words):
    told = tierkeeper(*words, alone=True, PYTHONPROFILEIMPORTTIME="1").stderr
    imported = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    assert "tiering_assets.ground.stack" in imported
    assert imported & {"great_expectations", "pandas", "pyspark", "dagster"} == set()


def test_a_topic_goes_from_sealed_to_released_by_hand(tierkeeper, endpoints, s3, sent):
    listed = tierkeeper.document("ledger", "list", "--topic", SPEC.topic)["ledgers"]
    sealed = [row for row in listed if row["state"] == "sealed"]
    assert sum(row["entries"] for row in sealed) == SPEC.messages
    ids = [row["ledger_id"] for row in sealed]
    first, last = ids[0], ids[-1]
    plain = tierkeeper("ledger", "list", "--topic", f"persistent://{SPEC.topic}").stdout
    assert plain.splitlines()[0].split() == [
        "LEDGER",
        "STATE",
        "ENTRIES",
        "SIZE",
        "CLOSED",
        "BY",
        "TOPIC",
    ]
    assert f"{first}" in plain

    page = tierkeeper("ledger", "show", first).stdout
    assert page.startswith(f"ledger {first}: sealed\n")
    assert f"tierkeeper ledger offload {first} --execute" in page
    shown = tierkeeper.document("ledger", "show", first)
    assert shown["bookkeeper"]["metadata"]["state"] == "CLOSED"
    assert "password" not in json.dumps(shown)
    assert shown["managed_ledger"]["listed"]["offload"] is None

    before = bucket_keys(s3, endpoints)
    plan = tierkeeper.document("ledger", "plan", first)["ledgers"][0]
    assert plan["decision"] == "copy"
    assert plan["blocks"][-1]["last_entry_id"] == plan["entries"] - 1 == sealed[0]["entries"] - 1
    assert len(plan["blocks"]) == 2  # 8 MB in blocks of 5 MiB
    assert bucket_keys(s3, endpoints) == before  # a plan writes nothing

    copied = tierkeeper.document("ledger", "offload", first)["ledgers"][0]
    assert (copied["state"], copied["copied"], copied["verified"]) == ("verified", True, True)
    assert copied["data_bytes"] == plan["object_bytes"]
    head = s3.head_object(Bucket=endpoints.s3_bucket, Key=copied["data_key"])
    assert head["ContentLength"] == plan["object_bytes"]

    done = tierkeeper.document("ledger", "offload", "--topic", SPEC.topic, "--execute", **LAG)[
        "ledgers"
    ]
    assert [row["state"] for row in done] == ["published"] * len(ids)
    assert done[0]["data_key"] == copied["data_key"]  # proven work is not done again
    again = tierkeeper.document("ledger", "offload", first, "--execute", **LAG)["ledgers"][0]
    assert again["noop"] is True

    verified = tierkeeper.document("ledger", "verify", *ids, "--source")["ledgers"]
    assert [(row["result"], row["with_source"]) for row in verified] == [("ok", True)] * len(ids)
    assert verified[0]["bytes_read"] == plan["object_bytes"]

    key = copied["data_key"]
    described = tierkeeper.document("object", "show", f"{key}-index")
    assert described["data_object_length"] == head["ContentLength"]
    assert [b["first_entry_id"] for b in described["blocks"]] == [
        b["first_entry_id"] for b in plan["blocks"]
    ]
    checked = tierkeeper.document("object", "verify", key)
    assert (checked["result"], checked["entries"]) == ("ok", sealed[0]["entries"])

    early = tierkeeper.document("ledger", "release", first, "--plan", code=0)
    assert early["ledgers"][0]["decision"] == "wait"  # the default lag of four hours
    assert "deletion lag has not elapsed" in early["ledgers"][0]["reasons"][0]

    due = tierkeeper.document("ledger", "release", "--due", "--plan", **LAG)
    decisions = {row["ledger_id"]: row["decision"] for row in due["ledgers"]}
    assert [decisions[ledger_id] for ledger_id in ids] == ["release"] * len(ids)
    assert due["executed"] is False
    assert {row["state"] for row in states(tierkeeper, ids)} == {"release_due"}  # nothing was done
    told = tierkeeper("ledger", "release", "--due", "--plan", **LAG).stdout
    assert "nothing was done, --execute does it" in told

    released = tierkeeper.document("ledger", "release", "--topic", SPEC.topic, "--execute", **LAG)
    assert [row["result"] for row in released["ledgers"]] == ["released"] * len(ids)
    assert {row["state"] for row in states(tierkeeper, ids)} == {"released"}
    repeated = tierkeeper.document("ledger", "release", last, "--execute", **LAG)["ledgers"][0]
    assert (repeated["result"], repeated["detail"]) == ("released", "by an earlier run")
    assert tierkeeper.document("ledger", "show", first)["bookkeeper"] is None
    chain = tierkeeper.document("ledger", "show", first)["attempts"][0]["chain"]
    assert [link["record"]["schema"].split("/")[1] for link in chain] == [
        "attempt",
        "certificate",
        "outcome",
        "publication",
        "release-intent",
        "release",
    ]
    assert all(link["follows"] for link in chain)

    assert consume_all(endpoints, SPEC) == sent  # from our objects alone
    after = tierkeeper("ledger", "verify", first, "--source").stdout
    assert "bookies not asked: the bookie copy is released or gone" in after

    damage(s3, endpoints, key)
    found = tierkeeper.document("ledger", "verify", first, code=1)["ledgers"][0]
    assert found["result"] == "findings"
    assert any("block 2" in text for text in found["findings"])
    found = tierkeeper.document("object", "verify", key, code=1)
    assert any("block 2" in text for text in found["findings"])


def states(tierkeeper, ids):
    listed = tierkeeper.document("ledger", "list", "--topic", SPEC.topic, **LAG)["ledgers"]
    return [row for row in listed if row["ledger_id"] in ids]


def bucket_keys(s3, endpoints):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=endpoints.s3_bucket)
    return {item["Key"] for page in pages for item in page.get("Contents", ())}


def damage(s3, endpoints, key):
    """One bit of the last byte of a payload in the second block; metadata stays."""
    place = {"Bucket": endpoints.s3_bucket, "Key": key}
    answer = s3.get_object(**place)
    body = bytearray(answer["Body"].read())
    before = sha256(body).digest()
    body[5 * 1024 * 1024 + 128 + 12 + 100] ^= 1
    assert sha256(body).digest() != before
    s3.put_object(**place, Body=bytes(body), Metadata=answer["Metadata"])


def test_doctor_finds_everything_in_order_and_leaves_nothing_behind(
    tierkeeper, s3, endpoints, sent
):
    found = tierkeeper.document("doctor", "--prove", "--topic", SPEC.topic, schema="doctor", **LAG)
    levels = {row["check"]: row["level"] for row in found["findings"]}
    assert found["ok"] is True
    other = [row["check"] for row in found["findings"] if row["level"] not in ("ok", "skip")]
    assert other == ["keys"], "no key signs certificates here, which it proposes"
    [broker] = [row["text"] for row in found["findings"] if row["check"] == "broker"]
    assert "Pulsar 4.0.8, cluster local, 1 live" in broker
    for check in (
        "loop over entries",
        "zookeeper",
        "broker metadata",
        "broker registration",
        "autoSkipNonRecoverableData",
        "conditional create",
        "multipart create",
        "part checksums",
        "read after write",
        "conditional overwrite",
        "user metadata",
        "versions",
        "bucket proofs",
        "clock",
        f"policy persistent://{SPEC.topic}",
    ):
        assert levels[check] == "ok", check
    assert sum(check.startswith("bookie ") for check in levels) == 3
    assert not [key for key in bucket_keys(s3, endpoints) if key.startswith("tierkeeper/probe/")]
    assert not s3.list_multipart_uploads(Bucket=endpoints.s3_bucket).get("Uploads")


def test_doctor_proves_versions_and_sees_a_rule_that_expires(tierkeeper, s3):
    bucket = f"by-hand-{uuid.uuid4().hex[:12]}"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket,
        LifecycleConfiguration={
            "Rules": [
                {
                    "ID": "tidy",
                    "Status": "Enabled",
                    "Filter": {"Prefix": ""},
                    "Expiration": {"Days": 30},
                }
            ]
        },
    )
    found = tierkeeper.document(
        "doctor", "--prove", code=1, schema="doctor", TIERKEEPER_STORE_BUCKET=bucket, **LAG
    )["findings"]
    by_check = {row["check"]: row for row in found}
    assert by_check["versions"]["text"] == "on: an older version stays readable by its id"
    assert by_check["lifecycle"]["level"] == "fail"
    assert "rule tidy: expires our objects" in by_check["lifecycle"]["text"]
    left = s3.list_object_versions(Bucket=bucket)
    assert ["/bucket-proofs/" in version["Key"] for version in left["Versions"]] == [True]
    # Other tests leave namespaces with policies of their own on the shared stack.
    wrong = [row for row in found if row["check"].startswith("policy persistent://public/default/")]
    assert wrong
    assert all("would not read our bucket" in row["text"] for row in wrong)
    assert all("set-offload-policies public/default" in row["next_step"] for row in wrong)


def test_doctor_names_the_command_that_lifts_a_short_broker_lag(tierkeeper, endpoints, sent):
    import requests

    url = f"{endpoints.admin_url}/admin/v2/namespaces/public/default/offloadDeletionLagMs"
    requests.put(url, json=5000, timeout=30).raise_for_status()
    try:
        found = tierkeeper("doctor", "--topic", SPEC.topic, code=1, **LAG).stdout
        assert "the broker itself deletes bookie copies 5 s after publication" in found
        assert "pulsar-admin namespaces set-offload-deletion-lag public/default --lag 10s" in found
    finally:
        # Taking the lag back leaves a policy object whose other fields are class defaults, a block
        # size of 64 MiB among them: the whole object goes.
        whole = url.replace("offloadDeletionLagMs", "removeOffloadPolicies")
        requests.delete(whole, timeout=30).raise_for_status()


FREE = choose_ports(StackOptions())
NOWHERE = f"127.0.0.1:{FREE['zookeeper']}"
TROUBLES = [
    pytest.param(
        {"TIERKEEPER_STORE_SECRET_KEY": "wrong-wrong-wrong"},
        ObjectStoreError,
        "check store.access_key and store.secret_key",
        id="wrong credentials",
    ),
    pytest.param(
        {"TIERKEEPER_STORE_ENDPOINT": f"http://{NOWHERE}", "TIERKEEPER_STORE_ATTEMPTS_MAX": "1"},
        ObjectStoreError,
        "check store.endpoint",
        id="wrong endpoint",
    ),
    pytest.param(
        {"TIERKEEPER_STORE_BUCKET": "no-such-bucket"},
        ObjectStoreError,
        "bucket 'no-such-bucket' at",
        id="missing bucket",
    ),
    pytest.param(
        {
            "TIERKEEPER_METADATA_STORE": f"zk:{NOWHERE}",
            "TIERKEEPER_METADATA_CONNECT_TIMEOUT_S": "1",
        },
        MetadataError,
        "no connection to ZooKeeper",
        id="ZooKeeper away",
    ),
    pytest.param(
        {"TIERKEEPER_STORE_BUCKET": ""},
        SettingsError,
        "store.bucket is not set",
        id="no bucket",
    ),
]


@pytest.mark.parametrize(("changes", "error", "said"), TROUBLES)
def test_trouble_is_one_clear_line_and_the_documented_code(tierkeeper, changes, error, said):
    done = tierkeeper("ledger", "offload", "--all", "--execute", code=error.exit_code, **changes)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    told = json.loads(
        tierkeeper("ledger", "list", "--json", code=error.exit_code, **changes).stderr
    )
    assert (told["schema"], told["error"]) == ("tierkeeper/error/1", error.__name__)


@pytest.mark.parametrize(("changes", "error", "said"), TROUBLES)
def test_doctor_goes_on_and_says_what_is_wrong(tierkeeper, changes, error, said):
    found = tierkeeper.document("doctor", code=1, schema="doctor", **LAG, **changes)["findings"]
    failed = [row for row in found if row["level"] == "fail"]
    assert said.split(" at")[0].replace("'", "") in failed[0]["text"].replace("'", "")
    if error is MetadataError:  # the broker knows better where ZooKeeper is
        assert "set metadata.store to zk:" in failed[1]["next_step"]
    else:
        assert len(failed) == 1
    assert {"python", "bucket" if error is MetadataError else "zookeeper"} <= {
        row["check"] for row in found if row["level"] == "ok"
    }
    assert [row for row in found if row["level"] == "skip"]


def test_a_broker_that_is_away_does_not_lose_the_page(tierkeeper, sent):
    away = {"TIERKEEPER_BROKER_ADMIN_URL": f"http://{NOWHERE}"}
    listed = tierkeeper.document("ledger", "list", "--topic", SPEC.topic, **away)["ledgers"]
    assert listed
    tierkeeper("ledger", "show", listed[0]["ledger_id"], **away)
    found = tierkeeper.document("doctor", code=1, schema="doctor", **LAG, **away)["findings"]
    failed = [row for row in found if row["level"] == "fail"]
    assert [row["check"] for row in failed] == ["broker"]
    assert "check broker.admin_url" in failed[0]["text"]
    assert BrokerError.exit_code == 25


def test_names_that_name_nothing_say_so(tierkeeper, endpoints):
    absent = "00000000-0000-4000-8000-000000000000-ledger-7"
    for words, error, said in (
        (("ledger", "show", "987654321"), LedgerNotFoundError, "ledger 987654321"),
        (("ledger", "plan", "987654321"), LedgerNotFoundError, "ledger 987654321"),
        (("ledger", "offload", "987654321"), LedgerNotFoundError, "ledger 987654321"),
        (("ledger", "verify", "987654321"), RefusedError, "no certified copy"),
        (("ledger", "release", "987654321", "--plan"), LedgerNotFoundError, "987654321"),
        (("object", "show", "some/key"), RefusedError, "<uuid>-ledger-<id>"),
        (("object", "verify", absent), ObjectNotFoundError, absent),
    ):
        done = tierkeeper(*words, code=error.exit_code)
        assert said in done.stderr, words
    done = tierkeeper("ledger", "offload", "--topic", "public/default/no-such", code=2)
    assert "no such topic" in done.stderr


def test_orphans_are_listed_and_swept_only_when_told(tierkeeper, s3, endpoints):
    found = tierkeeper.document("orphan", "sweep", "--plan")
    assert found["executed"] is False
    before = bucket_keys(s3, endpoints)
    for row in tierkeeper.document("orphan", "list")["attempts"]:
        assert row["decision"] == "keep"
        assert row["reason"]
    swept = tierkeeper.document("orphan", "sweep", "--execute")
    assert swept["executed"] is True
    changed = (
        bucket_keys(s3, endpoints) ^ before
    )  # of what other tests left, records may tell the end
    assert [key for key in changed if "-ledger-" in key] == []
    assert before - bucket_keys(s3, endpoints) == set()
