"""tools/check_bucket.py stands alone, has the audit's closed list, and its own Ed25519 is the real
one.
"""

import ast
import re
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.two_checkers import TOOL, tool
from tests.unit.records.examples import EXAMPLES
from tiering_assets.audit.audit_findings import FindingKind
from tiering_assets.audit.record_audit import FOLDERS
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import Certificate

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def test_it_imports_the_standard_library_and_boto3_alone():
    tree = ast.parse(TOOL.read_text(encoding="utf-8"))
    named = {alias.name for x in ast.walk(tree) if isinstance(x, ast.Import) for alias in x.names}
    named |= {str(x.module) for x in ast.walk(tree) if isinstance(x, ast.ImportFrom)}
    strangers = {name.partition(".")[0] for name in named} - set(sys.stdlib_module_names)
    assert strangers == {"boto3", "botocore"}


def test_both_checkers_and_the_page_have_the_same_kinds():
    kinds = {kind.value for kind in FindingKind}
    assert set(tool.KINDS) == kinds
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), flags=re.MULTILINE)) == kinds
    assert set(tool.FOLDER_OF) == set(FOLDERS)


CHAIN = [example for example in EXAMPLES if example.kind.split("/")[1] in tool.FIELDS]


@pytest.mark.parametrize("record", CHAIN, ids=lambda r: r.kind)
def test_its_field_tables_fit_what_is_written(record):
    kind = record.kind.split("/")[1]
    body = encode_record(record)
    assert tool.shape_problem(body, tool.FIELDS[kind], kind) is None
    for field in tool.FIELDS[kind]:
        if not field.endswith("?"):
            short = {name: value for name, value in body.items() if name != field}
            assert f"{field} is missing" in tool.shape_problem(short, tool.FIELDS[kind], kind)
            assert tool.shape_problem({**body, field: None}, tool.FIELDS[kind], kind)


@pytest.mark.parametrize("field", ["messages", "publish_min_ms", "publish_max_ms"])
def test_what_is_told_of_a_block_s_messages_may_be_missing_or_null(field):
    [record] = [example for example in EXAMPLES if isinstance(example, Certificate)]

    def problem(change):
        body = encode_record(record)
        [block] = body["blocks"]
        del block[field]
        return tool.shape_problem(
            {**body, "blocks": [block | change]}, tool.FIELDS["certificate"], "certificate"
        )

    assert problem({}) is None
    assert problem({field: None}) is None
    assert problem({field: 7}) is None
    assert problem({field: "7"}) == f"certificate.blocks[0].{field}: not int"


@settings(max_examples=25)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=60), st.integers(0, 511))
def test_its_signatures_are_those_of_the_library(seed, message, bit):
    key = Ed25519PrivateKey.from_private_bytes(seed)
    text = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    public = tool.public_key_of(text.decode())
    signature = key.sign(message)
    assert tool.verifies(public, message, signature)
    assert not tool.verifies(public, message + b"x", signature)
    bad = bytearray(signature)
    bad[bit // 8] ^= 1 << bit % 8
    assert not tool.verifies(public, message, bytes(bad))


@pytest.mark.parametrize("text", ["", "text", "-----BEGIN PUBLIC KEY-----\nAAAA\n"])
def test_it_refuses_what_is_no_public_key(text):
    with pytest.raises(ValueError, match=r"Ed25519|base64|padded|padding"):
        tool.public_key_of(text)


def test_it_takes_the_one_instance_and_no_doctors_probe_for_another():
    assert tool.instance_of(["tierkeeper/probe/", "tierkeeper/ours/"]) == "ours"
    for folders in (["tierkeeper/probe/"], ["tierkeeper/ours/", "tierkeeper/theirs/"]):
        with pytest.raises(ValueError, match="name one by --instance"):
            tool.instance_of(folders)


def test_it_ends_with_two_where_it_cannot_check(capsys, tmp_path):
    assert tool.main(["--bucket", "b", "--public-key", str(tmp_path / "none.pem")]) == 2
    assert "error: " in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        tool.main([])
    assert ended.value.code == 2
