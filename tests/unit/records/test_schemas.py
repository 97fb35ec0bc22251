import json
import re
from pathlib import Path

import pytest

from tests.unit.records.examples import EXAMPLES
from tiering_assets.records.codec import RECORD_TYPES
from tiering_assets.records.schemas import SCHEMAS, file_name, main, schema_text, stale, write

PAGE = Path(__file__).parents[3] / "docs" / "records.md"
FIXTURES = Path(__file__).parent / "fixtures"


def test_the_stored_schemas_are_current():
    assert stale() == []


def test_a_changed_a_missing_and_a_leftover_file_are_stale(tmp_path):
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "claim-1.json").write_text("{}")
    (tmp_path / "hold-1.json").unlink()
    (tmp_path / "claim-0.json").write_text("{}")
    assert stale(tmp_path) == ["claim-0.json", "claim-1.json", "hold-1.json"]


def test_the_check_exits_with_zero_when_current(capsys):
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda r: r.kind)
def test_a_schema_names_its_kind_and_all_fields_of_the_fixture(record):
    schema = json.loads(schema_text(type(record)))
    written = json.loads((FIXTURES / file_name(record.kind)).read_text())
    assert schema["properties"]["schema"] == {"const": record.kind}
    assert set(written) <= set(schema["properties"])
    assert set(schema["required"]) <= set(written)
    assert "additionalProperties" not in schema


def sections():
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {match.group(1): part for part in parts if (match := re.match(r".*`(\S+/\d+)`", part))}


@pytest.mark.parametrize("kind", RECORD_TYPES, ids=lambda kind: kind.kind)
def test_the_page_explains_every_field_of_every_kind(kind):
    schema = json.loads((SCHEMAS / file_name(kind.kind)).read_text())
    explained = set(re.findall(r"^\| `(\w+)` \|", sections()[kind.kind], flags=re.MULTILINE))
    assert explained == set(schema["properties"]) - {"schema", "writer", "previous", "digest"}
    assert f"schemas/{file_name(kind.kind)}" in sections()[kind.kind]


def test_the_page_explains_every_shared_part():
    text = PAGE.read_text(encoding="utf-8")
    for kind in RECORD_TYPES:
        for name, part in json.loads(schema_text(kind)).get("$defs", {}).items():
            section = text.split(f"### {name}\n", 1)[1].split("\n#", 1)[0]
            assert set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == set(
                part["properties"]
            )
