"""The second store is absent with a reason, and its requests are counted from its own log."""

import pytest

from benchmarks import versity
from benchmarks.versity import AbsentError, build, requests_in

LOG = (
    "KEY bucket [25/November/2026:18:48:08 +0000] 127.0.0.1 KEY ID s3_GetObject a-ledger-14 200 -\n"
    "KEY bucket [25/November/2026:18:48:08 +0000] 127.0.0.1 KEY ID s3_UploadPart a-ledger-14 200 -\n"
    "KEY bucket [25/November/2026:18:48:09 +0000] 127.0.0.1 KEY ID s3_GetObject a-ledger-14 206 -\n"
)


def test_requests_are_the_lines_of_the_log_by_operation():
    assert requests_in(LOG) == {"s3_GetObject": 2, "s3_UploadPart": 1}
    assert requests_in("") == {}
    assert requests_in("a line of another form\n") == {"unknown": 1}


def test_without_go_it_is_absent_and_says_what_is_lacking(tmp_path, monkeypatch):
    monkeypatch.setattr(versity, "PROGRAM", tmp_path / "versitygw")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AbsentError, match="no Go here"):
        build()


def test_a_build_that_fails_is_absent_with_its_last_line(tmp_path, monkeypatch):
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho first >&2\necho no route to the proxy >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr(versity, "PROGRAM", tmp_path / "bin" / "versitygw")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AbsentError, match="cannot be built: no route to the proxy"):
        build()
