"""`tierkeeper key make`: a key that signs certificates, so that releases need not read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session

app = typer.Typer(name="key", help="Keys that sign certificates.", no_args_is_help=True)


@command(
    app,
    "make",
    examples=("tierkeeper key make ~/.config/tierkeeper/keys",),
)
def make(
    session: Session,
    *,
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where the two files are written.")
    ],
) -> None:
    """Make a key that signs certificates, and say which settings use it.

    Writes two files, and changes no setting. No key is ever replaced. A release then believes
    certificates that the key signed, and does not read every byte again.
    """
    from tiering_assets.ground.signing import make_key

    made = make_key(directory)
    if session.as_json:
        print_document(
            "key-make",
            {
                "key_id": made.key_id,
                "private_key_file": str(made.private),
                "public_key_files": str(made.public),
            },
        )
        return
    print_line(f"key {made.key_id}: {made.private} signs, {made.public} checks")
    print_line("nothing uses it yet; in tierkeeper.toml:")
    print_line("")
    print_line("[sign]")
    private, public = json.dumps(str(made.private)), json.dumps(str(made.public))
    print_line(f"private_key_file = {private}  # only where ledgers are verified")
    print_line(f"public_key_files = {public}  # where ledgers are released or audited")
    print_line("require = false  # what was certified before is read again; true refuses it")
