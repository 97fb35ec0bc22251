"""The job `pause_tiering`: pause, disable and resume tiering from the launchpad.

Owns: a config that asks for what cannot be ends the run with one sentence, before anything is
written. What a pause is and who obeys it is decided by the same step as for `tierkeeper tiering`.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from tiering_assets.defs.shared.failures import as_failures, failure
from tiering_assets.defs.shared.names import CLUSTER_TAG, ClusterNames
from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.defs.shared.run_history import JOB_TAG
from tiering_assets.defs.telling.batch_summary import tag_result

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.look.brakes.scopes import Scope

USER_TAGS = ("tierkeeper/author", "user", "dagster/user")  # the last two by a UI with a login
NOBODY = "dagster"


class PauseConfig(dg.Config):
    """What to pause or resume; every run names its scopes and its reason."""

    topics: list[str] = Field(
        default=[],
        description=(
            "tenant/namespace/topic or persistent://…; a partitioned topic means all partitions"
        ),
    )
    namespaces: list[str] = Field(default=[], description="tenant/namespace: all of its topics")
    all: bool = Field(default=False, description="every topic of the cluster")
    mode: str = Field(
        default="paused",
        description=(
            "paused: no new copies for now; disabled: for good; enabled: take the pause of exactly "
            "these topics, namespaces or of all away"
        ),
    )
    reason: str = Field(default="", description="why; kept in the records, and never empty")


_OP = (
    "No new copies and no publication of what is named, until it is enabled again. What is "
    "published stays readable, is scrubbed and healed, and is released when it is due."
)
_JOB = (
    "Pause, disable or enable tiering of topics, namespaces or everything, as `tierkeeper "
    "tiering pause` and `resume` do. Who and why stays in the records."
)


def define_pause_tiering(cluster: ClusterNames) -> dg.JobDefinition:
    """One op; its config is the launchpad's form."""

    @dg.op(name="pause_topics", description=_OP)
    def pause_topics(
        context: dg.OpExecutionContext, config: PauseConfig, tiering_stack: TieringStack
    ) -> None:
        with as_failures("pause_tiering"):
            _pause(context, cluster, config, tiering_stack)

    @dg.job(
        name="pause_tiering",
        tags={JOB_TAG: "pause_tiering", CLUSTER_TAG: cluster.name},
        description=_JOB,
    )
    def pause_tiering() -> None:
        pause_topics()

    return pause_tiering


def _pause(
    context: dg.OpExecutionContext,
    cluster: ClusterNames,
    config: PauseConfig,
    tiering_stack: TieringStack,
) -> None:
    """Write or take away the pauses that the config names."""
    opened = tiering_stack.open(
        tiering_stack.load_for_cluster(cluster),
        run_id=context.run_id,
        narrate=partial(context.log.info, "tierkeeper: %s"),
        command=context.job_name,
    )
    with opened as stack:
        lines = apply_pauses(stack, config, author=author_of(context.run.tags))
    tag_result(context, "; ".join(lines))
    context.add_output_metadata({"what": dg.MetadataValue.md("\n".join(f"* {x}" for x in lines))})


def author_of(tags: Mapping[str, str]) -> str:
    """Who launched the run, by its tags; `dagster` where no tag names anybody."""
    return next((tags[name] for name in USER_TAGS if tags.get(name)), NOBODY)


def apply_pauses(stack: "Stack", config: PauseConfig, *, author: str) -> list[str]:
    """Do what the config says, all of it valid before any of it is done; a line per change.

    Raises:
        dg.Failure: the config is wrong; the sentence names the field and what was found.
        RefusedError: nobody knows a topic that is to be paused.
    """
    from tiering_assets.ground.own_policy import TieringMode
    from tiering_assets.look.brakes import pauses, scopes

    modes = [mode.value for mode in TieringMode]
    if config.mode not in modes:
        raise _refusal(f"mode is {config.mode!r:.100}, expected {', '.join(modes)}")
    if not config.reason.strip():
        raise _refusal("reason is empty, expected why; it is kept in the records")
    mode, wanted = TieringMode(config.mode), _scopes(config)
    if mode is not TieringMode.ENABLED:
        scopes.require_topics(stack, wanted)
    lines: list[str] = []

    def tell(line: str) -> None:
        stack.narrate(line)
        lines.append(line)

    for scope in wanted:
        if mode is TieringMode.ENABLED:
            lifted = pauses.resume(stack, scope, reason=config.reason, author=author)
            tell(f"{scope}: {'resumed' if lifted else 'there was no such pause'}")
            for name, why in pauses.still_off(stack, scope).items():
                tell(f"{name} stays {why}")
        else:
            fresh = pauses.pause(stack, scope, mode, reason=config.reason, author=author)
            before = "" if fresh else " before; the first reason stays"
            covered = len(scopes.topics_covered(stack, scope))
            tell(f"{scope}: {mode.value}{before}; covers {covered} topics or partitions today")
    return lines


def _scopes(config: PauseConfig) -> "list[Scope]":
    from tiering_assets.look.brakes.scopes import EVERYTHING, namespace_scope, topic_scope
    from tiering_assets.resources.errors import FormatError

    named = len(config.topics) + len(config.namespaces)
    if config.all and named:
        raise _refusal(
            f"all covers every topic, so topics and namespaces stay empty; found {named} names"
        )
    if not config.all and not named:
        raise _refusal("expected names in topics or namespaces, or all: true; found none")
    if config.all:
        return [EVERYTHING]
    try:
        found = [namespace_scope(name) for name in config.namespaces]
        found += [topic_scope(name) for name in config.topics]
    except FormatError as error:
        raise _refusal(str(error)) from None
    return list(dict.fromkeys(found))


def _refusal(text: str) -> dg.Failure:
    return failure(
        f"pause_tiering: {text}", next_step="correct the run config, then launch it again"
    )
