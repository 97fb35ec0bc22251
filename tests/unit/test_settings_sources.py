import traceback
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.native.loader import SWITCH
from tiering_assets.resources.settings import KNOWN, SECTIONS, Settings, StoreSettings
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
    file = written(
        '[publish]\ncoexist = true\n[release]\ndeletion_lag_s = 60\n[auto]\nretry_first_s = "200ms"\n'
    )
    environ = {
        "TIERKEEPER_OFFLOAD_BLOCK_BYTES": "5242880",
        "TIERKEEPER_OFFLOAD_TASK_BYTES": "100MB",
        "TIERKEEPER_BUDGET_UPLOAD_BYTES_PER_S": "50MiB/s",
        "TIERKEEPER_PUBLISH_PENDING_AGE_S": "30 days",
        "TIERKEEPER_PUBLISH_BROKER_MAY_RELEASE": "Yes",
        "TIERKEEPER_BROKER_TIMEOUT_S": " 2.5 ",
    }
    settings = load_settings(environ=environ, file=file).settings
    assert settings.offload.block_bytes == 5_242_880
    assert settings.publish.broker_may_release is True
    assert settings.publish.coexist is True
    assert settings.offload.task_bytes == 100_000_000
    assert settings.budget.upload_bytes_per_s == 50 * 1024 * 1024
    assert settings.publish.pending_age_s == 30 * 86400
    assert settings.auto.retry_first_s == 0.2
    assert settings.broker.timeout_s == 2.5
    assert type(settings.release.deletion_lag_s) is float


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TIERKEEPER_OFFLOAD_BLOCK_BYTES", "64 parsecs", "'64 parsecs': expected a size such as"),
        ("TIERKEEPER_OFFLOAD_BLOCK_BYTES", "10m", "'10m': expected a size such as 64MiB"),
        ("TIERKEEPER_BROKER_TIMEOUT_S", "nan", "'nan': expected a duration such as"),
        ("TIERKEEPER_BROKER_TIMEOUT_S", "", "'': expected a duration such as"),
        ("TIERKEEPER_BROKER_TIMEOUT_S", "64MiB", "'64MiB': expected a duration such as"),
        (
            "TIERKEEPER_BROKER_TIMEOUT_S",
            "2h",
            "'2h': must be at most 1 h: a timeout; a longer wait",
        ),
        ("TIERKEEPER_BUDGET_UPLOAD_BYTES_PER_S", "5m", "'5m': expected a rate such as 50MiB/s"),
        ("TIERKEEPER_STORE_ATTEMPTS_MAX", "5s", "'5s': expected a whole number without a unit"),
        (
            "TIERKEEPER_STORE_ATTEMPTS_MAX",
            "5MiB",
            "expected a whole number without a unit, such as",
        ),
        ("TIERKEEPER_RELEASE_FLEET_SHARE_MAX", "x", "'x': expected a number such as 0.5"),
        ("TIERKEEPER_RELEASE_FLEET_SHARE_MAX", "nan", "'nan': expected a number such as 0.5"),
        ("TIERKEEPER_PUBLISH_COEXIST", "maybe", "'maybe': expected true or false"),
        ("TIERKEEPER_OFFLOAD_BLOCK_BYTES", "5242879", "at least 5 MiB: S3 refuses smaller parts"),
        ("TIERKEEPER_STORE_ATTEMPTS_MAX", "0", "above zero"),
        ("TIERKEEPER_RELEASE_DELETION_LAG_S", "-1", "negative"),
        ("TIERKEEPER_RELEASE_FLEET_SHARE_MAX", "1.5", "at most 1"),
        ("TIERKEEPER_OBJECTIVES_WARN_AT", "1.5", "at most 1"),
        ("TIERKEEPER_OBJECTIVES_FRESH_S", "59", "at least 1 min"),
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


NUMBERS = {name: one for name, one in KNOWN.items() if isinstance(one.default, int | float)}
NUMBERS = {name: one for name, one in NUMBERS.items() if not isinstance(one.default, bool)}
TOO_MUCH = 1e300


def with_value(name, value):
    section, _, field = name.partition(".")
    settings = Settings()
    changed = replace(getattr(settings, section), **{field: value})
    return getattr(getattr(replace(settings, **{section: changed}), section), field)


def test_every_setting_has_a_kind_and_every_number_a_range():
    declared = {
        f"{section}.{one.name}"
        for section in SECTIONS
        for one in fields(getattr(Settings(), section))
    }
    assert declared == set(KNOWN)
    assert len(NUMBERS) == 87
    assert [name for name, one in KNOWN.items() if bool(one.range) != (name in NUMBERS)] == []


@pytest.mark.parametrize("name", KNOWN)
def test_a_default_is_one_that_is_allowed(name):
    assert with_value(name, KNOWN[name].default) == KNOWN[name].default


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_beyond_its_range_is_refused_by_name_in_code_too(name):
    most = KNOWN[name].range.rpartition(" to ")[2]
    assert load_settings({name: most}, {})  # as the page of settings prints it
    whole = isinstance(KNOWN[name].default, int)
    for wrong in (int(TOO_MUCH) if whole else TOO_MUCH, -1):
        with pytest.raises(SettingsError, match=rf"^{name}: .*must (be at most |not be negative)"):
            with_value(name, wrong)
    for text in ("99999999999999999", "-1"):
        with pytest.raises(SettingsError) as caught:
            load_settings({name: text}, {})
        assert f"{name} (flag): '{text}': must " in str(caught.value)
    if KNOWN[name].range.startswith("0 to "):
        assert with_value(name, 0) == 0
    else:
        with pytest.raises(SettingsError, match=f"^{name}: 0"):
            with_value(name, 0)
    for other in ("five", None, True, [1]):
        with pytest.raises(SettingsError, match=f"^{name}: .*: expected a "):
            with_value(name, other)


def test_what_is_changed_in_code_is_refused_without_a_trace_of_the_value():
    with pytest.raises(SettingsError, match=r"store\.secret_key: \*\*\*: expected text") as caught:
        StoreSettings(bucket="b", secret_key=["hunter2"])  # type: ignore[arg-type]
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(SettingsError, match=r"store\.nothing: Unexpected keyword argument"):
        StoreSettings(nothing="hunter2")  # type: ignore[call-arg]


@given(st.sampled_from(sorted(NUMBERS)), st.data())
def test_what_is_shown_reads_back_as_the_same_value(name, data):
    one = KNOWN[name]
    numbers = st.integers(0, 2**60) if isinstance(one.default, int) else st.floats(0, 1e9)
    value = data.draw(numbers | st.just(one.default))
    try:
        with_value(name, value)
    except SettingsError:
        return
    assert with_value(name, one.shown(value)) == value
    loaded = load_settings({name: one.shown(value)}, {})
    assert {row.name: row.value for row in describe(loaded)}[name] == one.shown(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[store]\nbukket = 'b'", "did you mean store.bucket?"),
        ("[stor]\nbucket = 'b'", "did you mean store?"),
        ("bucket = 'b'", r"unknown section [bucket]"),
        ("store = 'b'", "must be a table"),
        ("[store]\nbucket = 7", "store.bucket (file other.toml): 7: expected text"),
        ("[store]\nbucket = ['b']", "store.bucket (file other.toml): a list: expected text"),
        ("[store.bucket]\nx = 1", "store.bucket (file other.toml): a dict: expected text"),
        ("[store]\nattempts_max = true", "True: expected a whole number"),
        ("[store]\nattempts_max = 1.5", "1.5: expected a whole number"),
        ("[publish]\ncoexist = 1", "1: expected true or false"),
        ("[broker]\ntimeout_s = inf", "inf: expected a duration"),
        ("[broker]\ntimeout_s = '2 h'", "'2 h': must be at most 1 h"),
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


def test_the_switch_of_the_loop_in_c_is_no_unknown_setting():
    assert load_settings(environ={SWITCH: "off"}).settings == load_settings(environ={}).settings


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
