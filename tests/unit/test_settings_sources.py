import traceback
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import SECTIONS, Settings
from tiering_assets.resources.settings_bounds import BOUNDS
from tiering_assets.resources.settings_sources import describe, load_settings, require_store

PAIR = {"TIERKEEPER_STORE_ACCESS_KEY": "ak", "TIERKEEPER_STORE_SECRET_KEY": "s3cr3t-value"}


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(text, name="other.toml"):
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_source_everything_is_default():
    loaded = load_settings(environ={"PATH": "/bin"})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_flags_beat_environment_beats_file_beats_default():
    file = written('[store]\nbucket = "f"\nregion = "f"\nendpoint = "http://f:1"\n')
    environ = {"TIERKEEPER_STORE_BUCKET": "e", "TIERKEEPER_STORE_REGION": "e"}
    loaded = load_settings({"store.bucket": "flag"}, environ, file)
    store = loaded.settings.store
    assert (store.bucket, store.region, store.endpoint) == ("flag", "e", "http://f:1")
    assert loaded.origins["store.bucket"] == "flag"
    assert loaded.origins["store.region"] == "environment TIERKEEPER_STORE_REGION"
    assert loaded.origins["store.endpoint"] == "file other.toml"
    assert loaded.origins["store.attempts_max"] == "default"


def test_the_file_is_the_flags_then_the_variables_then_the_one_that_lies_here():
    written('[store]\nbucket = "here"\n', "tierkeeper.toml")
    named = written('[store]\nbucket = "named"\n', "named.toml")
    flagged = written('[store]\nbucket = "flagged"\n', "flagged.toml")
    environ = {"TIERKEEPER_CONFIG": str(named)}
    assert load_settings(environ={}).settings.store.bucket == "here"
    assert load_settings(environ=environ).settings.store.bucket == "named"
    assert load_settings(environ=environ, file=flagged).settings.store.bucket == "flagged"


def test_values_become_their_types():
    file = written("[publish]\ncoexist = true\n[release]\ndeletion_lag_s = 60\n")
    environ = {
        "TIERKEEPER_OFFLOAD_BLOCK_BYTES": "5242880",
        "TIERKEEPER_PUBLISH_BROKER_MAY_RELEASE": "Yes",
        "TIERKEEPER_BROKER_TIMEOUT_S": " 2.5 ",
    }
    settings = load_settings(environ=environ, file=file).settings
    assert settings.offload.block_bytes == 5_242_880
    assert settings.publish.broker_may_release is True
    assert settings.publish.coexist is True
    assert settings.broker.timeout_s == 2.5
    assert type(settings.release.deletion_lag_s) is float


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TIERKEEPER_OFFLOAD_BLOCK_BYTES", "64MiB", "'64MiB' is not a whole number"),
        ("TIERKEEPER_BROKER_TIMEOUT_S", "nan", "'nan' is not a number"),
        ("TIERKEEPER_BROKER_TIMEOUT_S", "", "'' is not a number"),
        ("TIERKEEPER_PUBLISH_COEXIST", "maybe", "'maybe' is not true or false"),
        ("TIERKEEPER_OFFLOAD_BLOCK_BYTES", "5242879", "at least 5242880"),
        ("TIERKEEPER_STORE_ATTEMPTS_MAX", "0", "above zero"),
        ("TIERKEEPER_RELEASE_DELETION_LAG_S", "-1", "negative"),
        ("TIERKEEPER_RELEASE_FLEET_SHARE_MAX", "1.5", "at most 1"),
        ("TIERKEEPER_OBJECTIVES_WARN_AT", "1.5", "at most 1"),
        ("TIERKEEPER_OBJECTIVES_FRESH_S", "59", "at least 60"),
        ("TIERKEEPER_METADATA_STORE", "oxia://h:1", "only ZooKeeper"),
        ("TIERKEEPER_METADATA_STORE", "etcd:http://h:1", "only ZooKeeper"),
        ("TIERKEEPER_METADATA_STORE", "zk:", "only ZooKeeper"),
        ("TIERKEEPER_STORE_ENDPOINT", "localhost:9000", "must be a URL"),
        ("TIERKEEPER_STORE_ENDPOINT", "http://h:99999", "must be a URL"),
        ("TIERKEEPER_BROKER_ADMIN_URL", "", "must be a URL"),
    ],
)
def test_a_bad_value_is_told_with_its_setting_origin_and_what_was_expected(variable, value, said):
    with pytest.raises(SettingsError) as caught:
        load_settings(environ={variable: value})
    name = variable.removeprefix("TIERKEEPER_").lower().replace("_", ".", 1)
    assert f"{name} (environment {variable})" in str(caught.value)
    assert said in str(caught.value)


KINDS = {
    f"{section}.{one.name}": one.type
    for section in SECTIONS
    for one in fields(getattr(Settings(), section))
}


def test_every_number_has_a_bound_and_the_default_is_within():
    assert set(BOUNDS) == {name for name, kind in KINDS.items() if kind in ("int", "float")}
    for name, bound in BOUNDS.items():
        section, _, field = name.partition(".")
        assert bound.broken_by(getattr(getattr(Settings(), section), field)) is None, name


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_beyond_its_bound_is_refused_by_name(name):
    whole = KINDS[name] == "int"
    good = str(int(BOUNDS[name].most) if whole else BOUNDS[name].most)
    assert load_settings({name: good}, {})
    for wrong in ("99999999999999999", "1e300") if not whole else ("99999999999999999",):
        with pytest.raises(SettingsError) as caught:
            load_settings({name: wrong}, {})
        assert f"{name} (flag): " in str(caught.value)
        assert "must be at most " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[store]\nbukket = 'b'", "did you mean store.bucket?"),
        ("[stor]\nbucket = 'b'", "did you mean store?"),
        ("bucket = 'b'", r"unknown section [bucket]"),
        ("store = 'b'", "must be a table"),
        ("[store]\nbucket = 7", "store.bucket (file other.toml): 7 is not text"),
        ("[store]\nattempts_max = true", "True is not a whole number"),
        ("[store]\nattempts_max = 1.5", "1.5 is not a whole number"),
        ("[publish]\ncoexist = 1", "1 is not true or false"),
        ("[broker]\ntimeout_s = inf", "inf is not a number"),
        ("[store\n", "not TOML (at line 1"),
    ],
)
def test_a_bad_file_is_told_with_its_path(text, said):
    with pytest.raises(SettingsError) as caught:
        load_settings(environ={}, file=written(text))
    assert said in str(caught.value)
    assert "other.toml" in str(caught.value)


def test_a_named_file_that_is_missing_is_an_error():
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        load_settings(environ={}, file=Path("nowhere.toml"))
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        load_settings(environ={"TIERKEEPER_CONFIG": "nowhere.toml"})


@pytest.mark.parametrize(
    "name", ["store.access_key", "store.secret_key", "bookies.password", "broker.token"]
)
def test_a_credential_may_lie_in_a_file_of_its_own(name):
    variable = f"TIERKEEPER_{name.replace('.', '_').upper()}_FILE"
    mounted = written("one of\u00e4 two\n", "mounted")
    pair = {"TIERKEEPER_STORE_ACCESS_KEY": "ak", "TIERKEEPER_STORE_SECRET_KEY": "sk"}
    environ = {k: v for k, v in pair.items() if f"{k}_FILE" != variable}
    loaded = load_settings(environ=environ | {variable: str(mounted)})
    section, _, field = name.partition(".")
    assert getattr(getattr(loaded.settings, section), field) == "one of\u00e4 two"
    assert loaded.origins[name] == f"file mounted ({variable})"


def test_a_mounted_credential_that_cannot_be_read_is_told_with_its_path_alone():
    variable = "TIERKEEPER_BOOKIES_PASSWORD_FILE"
    Path("latin").write_bytes(b"s3cr\xe4t")
    for path, said in (("nowhere", "No such file"), ("latin", "not UTF-8"), (".", "directory")):
        with pytest.raises(SettingsError, match=said) as caught:
            load_settings(environ={variable: path})
        assert f"{variable}: {path}: " in str(caught.value)
        assert "s3cr" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(SettingsError, match="is empty: is the secret mounted"):
        load_settings(environ={variable: str(written("\n", "empty"))})


def test_a_variable_beats_its_file_and_that_beats_the_settings_file():
    mounted = written("mounted\n", "mounted")
    file = written('[bookies]\npassword = "in the settings"\n')
    environ = {"TIERKEEPER_BOOKIES_PASSWORD_FILE": str(mounted)}
    assert load_settings(environ=environ, file=file).settings.bookies.password == "mounted"
    environ |= {"TIERKEEPER_BOOKIES_PASSWORD": "set", "TIERKEEPER_BROKER_TOKEN_FILE": str(mounted)}
    settings = load_settings(environ=environ, file=file).settings
    assert (settings.bookies.password, settings.broker.token) == ("set", "mounted")


def test_only_credentials_have_a_variable_for_their_file():
    with pytest.raises(SettingsError, match=r"did you mean TIERKEEPER_STORE_BUCKET\?"):
        load_settings(environ={"TIERKEEPER_STORE_BUCKET_FILE": "x"})


def test_unknown_variables_and_flags_are_errors_with_the_nearest_name():
    with pytest.raises(SettingsError, match=r"did you mean TIERKEEPER_STORE_BUCKET\?"):
        load_settings(environ={"TIERKEEPER_STORE_BUKET": "b"})
    with pytest.raises(SettingsError, match=r"did you mean store\.bucket\?"):
        load_settings({"store.buckett": "b"}, {})


def test_half_a_key_pair_is_refused():
    with pytest.raises(SettingsError, match=r"store\.secret_key"):
        load_settings(environ={"TIERKEEPER_STORE_ACCESS_KEY": "ak"})


def test_commands_that_need_a_bucket_say_how_to_name_it():
    with pytest.raises(SettingsError, match="TIERKEEPER_STORE_BUCKET"):
        require_store(Settings())
    loaded = load_settings({"store.bucket": "b"}, {})
    assert require_store(loaded.settings).bucket == "b"


def test_every_setting_is_described_with_secrets_masked():
    rows = {row.name: row for row in describe(load_settings(environ=PAIR))}
    assert {name.partition(".")[0] for name in rows} == set(SECTIONS)
    secret = rows["store.secret_key"]
    assert (secret.value, secret.default) == ("***", "")
    assert rows["store.access_key"].value == "***"  # half of a pair, and of no use in a log
    assert secret.origin == "environment TIERKEEPER_STORE_SECRET_KEY"
    assert rows["broker.token"].value == ""
    assert rows["publish.coexist"].value == "false"
    assert all(row.help for row in rows.values())


SECRETS = ("store.access_key", "store.secret_key", "broker.token", "bookies.password")
# Marked at both ends, so that it is found in no text by chance.
PLANTED = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=4).map(
    lambda text: f"zq{text}qz"
)


def assert_shown_nowhere(secret, environ=None, flags=None, file=None):
    """Neither in what was loaded nor in the error, its causes included."""
    try:
        loaded = load_settings(flags, environ or {}, file)
    except SettingsError as error:
        shown = repr(error) + "".join(traceback.format_exception_only(error))
        shown += repr(error.__cause__)
    else:
        shown = repr(loaded) + str(loaded.settings) + repr(describe(loaded))
    assert secret not in shown
    assert repr(secret)[1:-1] not in shown


def toml_text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(
    secret=PLANTED,
    name=st.sampled_from(SECRETS),
    broken=st.sampled_from([None, "offload.block_bytes", "metadata.store", "broker.timeout_s"]),
)
def test_a_planted_secret_appears_nowhere(secret, name, broken):
    flags = {name: secret, "store.access_key": "ak", "store.secret_key": secret}
    if broken:
        flags[broken] = "?"
    assert_shown_nowhere(secret, flags=flags)
    environ = {f"TIERKEEPER_{n.replace('.', '_').upper()}": v for n, v in flags.items()}
    assert_shown_nowhere(secret, environ=environ)
    assert_shown_nowhere(secret, environ={"TIERKEEPER_STORE_SECRT": secret})
    assert_shown_nowhere(secret, flags={"store.endpoint": f"http://user:{secret}@host:1"})
    assert_shown_nowhere(secret, flags={"broker.admin_url": f"http://user:{secret}@host:1"})
    section, _, field = name.partition(".")
    for text in (
        f"[{section}]\n{field} = {toml_text(secret)}\n",
        f"[{section}]\n{field} = [{toml_text(secret)}]\n",
        f"[{section}]\n{field}x = {toml_text(secret)}\n",
        f"[{section}]\n{field} = {secret}\n",
        f"[{section}]\n{field} = {toml_text(secret)}\n[oops\n",
    ):
        assert_shown_nowhere(secret, file=written(text))
