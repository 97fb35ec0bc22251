from tiering_assets.resources import proto_build


def test_the_generated_code_is_what_the_proto_files_say(capsys):
    assert proto_build.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_a_difference_ends_with_1_and_says_what_to_do(monkeypatch, tmp_path, capsys):
    proto_build.generate(tmp_path)
    (tmp_path / "MLDataFormats_pb2.py").write_text("# edited by hand\n")
    (tmp_path / "Gone_pb2.py").write_text("")
    (tmp_path / "BookKeeperDataFormats_pb2.pyi").unlink()
    monkeypatch.setattr(proto_build, "GENERATED_DIR", tmp_path)
    assert proto_build.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "MLDataFormats_pb2.py is stale" in said
    assert "Gone_pb2.py has no .proto file any more" in said
    assert "BookKeeperDataFormats_pb2.pyi is missing" in said
    assert "python -m tiering_assets.resources.proto_build" in said
