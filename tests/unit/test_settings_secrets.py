"""No secret and no value of an unknown name is ever told, whatever is wrong, wherever it lies."""

import io
import logging
import os
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering_assets.cli import main as cli
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import KNOWN
from tiering_assets.resources.settings_file import write_switch
from tiering_assets.resources.settings_places import own_credentials, variable_of
from tiering_assets.resources.settings_sources import describe, load_settings, read_settings

SECRETS = sorted(name for name, one in KNOWN.items() if one.secret)
# Marked at both ends, so that it is found in no text by chance.
PLANTED = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=4).map(
    lambda text: f"zq{text}qz"
)
NAMES = st.sampled_from([*SECRETS, "store.nothing", "nothing.at_all"])
FEW = settings(max_examples=20, deadline=None)  # each runs commands
BROKEN = st.sampled_from(["", "offload.block_bytes", "metadata.store", "store.endpoint"])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYDANTIC_SETTINGS_DEBUG", "1")  # the library tells all that it reads


def told(flags, environ, file):
    """All that can be read of loading these: logs, errors with causes, what commands print."""
    logged = io.StringIO()
    handler, root = logging.StreamHandler(logged), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    parts = []
    try:
        loaded = load_settings(flags, environ, file)
    except SettingsError as error:
        seen: BaseException | None = error
        parts += traceback.format_exception(error)
        while seen is not None:
            parts += [str(seen), repr(seen), repr(seen.args), repr(vars(seen))]
            seen = seen.__cause__ or seen.__context__
    else:
        parts += [repr(loaded), str(loaded.settings), repr(describe(loaded))]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    with (
        patch.dict(os.environ, environ),
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        options = [f"--set={name}={value}" for name, value in flags.items()]
        options += [f"--config={file}"] if file else []
        for words in (
            ["config", "check"],
            ["config", "show", "-vv"],
            ["config", "check", "--json"],
        ):
            cli.run([*words, *options])
        for act in (
            lambda: own_credentials(SECRETS, {"TIERKEEPER_CONFIG": str(file)} if file else environ),
            lambda: write_switch("auto.enabled", True, environ=environ, file=file),
        ):
            try:
                act()
            except SettingsError:
                parts.append(traceback.format_exc())
    return "\n".join([*parts, logged.getvalue(), out.getvalue(), err.getvalue()])


def assert_untold(secret, *, flags=None, environ=None, file=None):
    found = told(flags or {}, environ or {}, file)
    assert secret not in found
    assert repr(secret)[1:-1] not in found


def written(text, name="other.toml"):
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def toml_text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@FEW
@given(secret=PLANTED, name=NAMES, broken=BROKEN)
def test_a_flag(secret, name, broken):
    flags = {name: secret} | ({broken: "?"} if broken else {})
    assert_untold(secret, flags=flags)
    assert_untold(secret, flags=flags | {"store.access_key": "ak", "store.secret_key": secret})


@FEW
@given(secret=PLANTED, name=st.sampled_from(["store.endpoint", "broker.admin_url"]))
def test_a_password_in_a_url(secret, name):
    assert_untold(secret, flags={name: f"http://user:{secret}@host:1"})


@FEW
@given(secret=PLANTED, name=NAMES, broken=BROKEN)
def test_a_variable(secret, name, broken):
    environ = {variable_of(name): secret} | ({variable_of(broken): "?"} if broken else {})
    whole = {"TIERKEEPER_STORE": f'{{"secret_key": "{secret}"}}'}
    assert_untold(secret, environ=environ | whole)


@FEW
@given(
    secret=PLANTED,
    name=st.sampled_from(SECRETS),
    broken=BROKEN,
    end=st.sampled_from(["", "\n", "\xff"]),
)
def test_a_file_of_its_own(secret, name, broken, end):
    environ = {variable_of(broken): "?"} if broken else {}
    mounted = written(secret.encode() + end.encode("latin-1"), "mounted")
    assert_untold(secret, environ=environ | {f"{variable_of(name)}_FILE": str(mounted)})


SHAPES = [
    "[{section}]\n{key} = {quoted}\n",
    "[{section}]\n{key} = [{quoted}]\n",
    "[{section}]\n{key} = {{ a = {quoted} }}\n",
    "[{section}.{key}]\na = {quoted}\n",
    "[[{section}]]\n{key} = {quoted}\n",
    "[{section}]\n{key}x = {quoted}\n",
    "{section} = {quoted}\n",
    "{key} = {quoted}\n",
    "[store]\nbucket = {{ secret_key = {quoted} }}\n",
    # None of these is TOML, whatever the secret is.
    "[{section}]\n{key} = {secret}\n",
    "[{section}]\n{key} = '''{secret}",
    "[{section}]\n{key} = {quoted}\n[oops\n",
    "[{section}]\n{key} = {quoted}\n{key} = {quoted}\n",
    "[{section}]\n{key} = {{ {quoted} = 1, {quoted} = 2 }}\n",
    "{secret}",
]


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=8, deadline=None)
@given(secret=PLANTED, name=NAMES, broken=BROKEN, end=st.sampled_from([b"", b"\xff"]))
def test_the_settings_file(shape, secret, name, broken, end):
    section, _, key = name.partition(".")
    text = shape.format(section=section, key=key, secret=secret, quoted=toml_text(secret))
    environ = {variable_of(broken): "?"} if broken else {}
    assert_untold(secret, environ=environ, file=written(text.encode() + end))


def test_every_problem_is_told_with_a_canary_beside_it():
    """The same in one look: what is told is enough to find each, and nothing of the values."""
    file = written('[store]\nsecret_key = ["zq"]\nnothing = "zq"\n[no]\nx = "zq"\n')
    flags = {"broker.token": "zq", "store.no": "zq", "offload.block_bytes": "1"}
    environ = {"TIERKEEPER_NO": "zq", "TIERKEEPER_BOOKIES_PASSWORD_FILE": "missing"}
    _none, problems = read_settings(flags, environ, file)
    assert sorted(line.partition(" (")[0].partition(":")[0] for line in problems) == [
        "TIERKEEPER_BOOKIES_PASSWORD_FILE",
        "offload.block_bytes",
        "store.access_key is not set",
        "store.secret_key",
        "unknown section [no]",
        "unknown setting store.no",
        "unknown setting store.nothing",
        "unknown variable TIERKEEPER_NO",
    ]
    assert "zq" not in "".join(problems)
