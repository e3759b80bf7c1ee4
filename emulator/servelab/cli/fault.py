"""``servelab fault``: things go wrong on emulated nodes, by an annotation."""

import asyncio
import datetime
from collections.abc import Callable
from typing import Any

import click
import pydantic
from rich import table as rich_table

from modelserve import errors, ports
from modelserve.api import faults as api
from modelserve.api import names
from modelserve.cli import options, target
from servelab.cli import where
from servelab.node.faults import annotations
from servelab.report import paper

KINDS = {
    "pod": ports.PODS,
    "node": ports.NODES,
    "pool": ports.GPUPOOLS,
    "gpupool": ports.GPUPOOLS,
}
MANAGER = "servelab-fault"
TYPES = click.Choice([kind.value for kind in api.FaultType])


class Target(click.ParamType[tuple[str, str]]):
    """``pod/NAME``, ``node/NAME`` or ``pool/NAME``."""

    name = "target"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        kind, slash, name = str(value).partition("/")
        if not slash or kind not in KINDS or not name:
            self.fail(f"{value!r} is none; write pod/NAME, node/NAME or pool/NAME", param, ctx)
        return kind, name


def _namespace(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-n", "--namespace", default=None, help="Of the pod; left out: the kubeconfig's."
    )(function)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def fault() -> None:
    """Let things go wrong on emulated nodes: images, weights, GPUs, engines, nodes."""


@fault.command(
    "inject",
    short_help="Let a fault befall a pod, a node or a pool.",
    epilog=f"TYPE: {', '.join(TYPES.choices)}.",
)
@click.argument("type", type=TYPES, metavar="TYPE")
@click.argument("target", type=Target())
@_namespace
@options.kubeconfig
@click.option("--name", default=None, help="By which `clear` finds it.")
@click.option(
    "--after", "after_seconds", type=float, default=None, help="Emulated seconds from now."
)
@click.option("--for", "duration_seconds", type=float, default=None, help="Emulated seconds.")
@click.option("--probability", type=float, default=None, help="Share of the pods or nodes.")
@click.option("--seed", type=int, default=None, help="Draws others of them.")
@click.option("--container", default=None, help="Only this container.")
@click.option("--image", default=None, help="ImagePullError: only this image.")
@click.option("--message", default=None, help="ImagePullError: the registry's words.")
@click.option("--factor", type=float, default=None, help="Slow…: how many times as slow.")
@click.option("--exit-code", type=int, default=None, help="CrashLoop: the exit code.")
@click.option("--xid", type=int, default=None, help="XID: the driver's number.")
@click.option("--gpus", type=int, default=None, help="XID, GPUsVanish: how many of a node's.")
@click.option(
    "--notice", "notice_seconds", type=float, default=None, help="SpotReclaim: until then."
)
@options.printed(plain="text")
def inject(
    type: str,
    target: tuple[str, str],
    namespace: str | None,
    kubeconfig: str | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Let a fault of TYPE befall TARGET (pod/NAME, node/NAME, pool/NAME), from now on.

    It is written into annotation emulator.modelserve.dev/faults, which kubectl can write as well.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    given = {"type": type, "at": now, **{k: v for k, v in words.items() if v is not None}}
    try:
        made = api.Fault.model_validate(given)
    except pydantic.ValidationError as error:
        raise _refusal(error) from error
    if made.of_node and target[0] == "pod":
        raise errors.InputError(f"{type} befalls nodes: name node/NAME or pool/NAME")
    _change(target, namespace, kubeconfig, lambda found: (*found, made))
    if as_json:
        click.echo(where.as_json(made.model_dump(mode="json", by_alias=True, exclude_none=True)))
    else:
        click.echo(f"{'/'.join(target)}: {annotations.sentence(made)}")


def _refusal(error: pydantic.ValidationError) -> Exception:
    """By the name of the flag, where one is wrong by itself."""
    first, context = error.errors()[0], click.get_current_context()
    flag = next((p for p in context.command.params if (p.name,) == first["loc"]), None)
    if flag is None:
        return errors.InputError(api.sentence(error))
    said = first["msg"].removeprefix("Input ")
    return click.BadParameter(f"{first['input']} {said}", context, flag)


@fault.command("clear", short_help="Take back what was injected.")
@click.argument("target", type=Target())
@_namespace
@options.kubeconfig
@click.option("--name", default=None, help="Only the fault of that name.")
@click.option("--type", "kind", type=TYPES, metavar="TYPE", help="Only this type.")
@options.printed(plain="text")
def clear(
    target: tuple[str, str],
    namespace: str | None,
    kubeconfig: str | None,
    name: str | None,
    kind: str | None,
    as_json: bool,
) -> None:
    """Take back what was injected into TARGET; faults of a pool's spec stay."""
    gone: list[api.Fault] = []

    def kept(found: tuple[api.Fault, ...]) -> tuple[api.Fault, ...]:
        chosen = [f for f in found if name in (None, f.name) and kind in (None, f.type.value)]
        gone.extend(chosen)
        return tuple(each for each in found if each not in chosen)

    _change(target, namespace, kubeconfig, kept)
    if as_json:
        click.echo(where.as_json({"cleared": len(gone)}))
    else:
        click.echo(f"{'/'.join(target)}: {len(gone)} taken back")


@fault.command("list", short_help="Faults there are, and which hold now.")
@_namespace
@options.kubeconfig
@options.printed("JSON: a list.")
def list_faults(namespace: str | None, kubeconfig: str | None, as_json: bool) -> None:
    """Faults of pods in all namespaces (or in one), of nodes and of pools, and which hold now."""

    async def work(cluster: ports.Cluster) -> list[annotations.Row]:
        now_s = datetime.datetime.now(datetime.UTC).timestamp()
        scale = await _scale(cluster)
        pods, _ = await cluster.list(ports.PODS, namespace)
        nodes, _ = await cluster.list(ports.NODES, label_selector=f"{names.LABEL_VIRTUAL}=true")
        pools, _ = await cluster.list(ports.GPUPOOLS)
        kinds = (("pool", pools), ("node", nodes), ("pod", pods))
        return [row for kind, items in kinds for row in annotations.rows(kind, items, now_s, scale)]

    found = asyncio.run(target.with_cluster(kubeconfig, work))
    if as_json:
        click.echo(where.as_json([row.to_json() for row in found]))
        return
    table = rich_table.Table(box=None)
    for heading in ("on", "type", "name", "from", "until", "now"):
        table.add_column(heading)
    for row in found:
        table.add_row(*row.cells())
    if found:
        paper.rows(table)
    else:
        click.echo("no faults")


def _change(
    goal: tuple[str, str],
    namespace: str | None,
    kubeconfig: str | None,
    change: Callable[[tuple[api.Fault, ...]], tuple[api.Fault, ...]],
) -> None:
    """Change an object's list. Raises InputError if it is not there, or unreadable."""
    kind, name = goal
    resource = KINDS[kind]
    place = target.namespace(namespace, kubeconfig) if resource.namespaced else None

    async def work(cluster: ports.Cluster) -> None:
        try:
            found = await cluster.get(resource, place, name)
        except errors.NotFound as error:
            raise errors.InputError(f"there is no {kind} {name!r}") from error
        text = (found["metadata"].get("annotations") or {}).get(names.FAULTS, "")
        said = change(api.parse(text, f"{kind} {name}"))
        value = api.render(said) if said else None
        body = {"metadata": {"annotations": {names.FAULTS: value}}}
        await cluster.patch(resource, place, name, body, manager=MANAGER)

    asyncio.run(target.with_cluster(kubeconfig, work))


async def _scale(cluster: ports.Cluster) -> float:
    try:
        found = await cluster.get(ports.CONFIG_MAPS, names.SYSTEM_NAMESPACE, names.TIME_CONFIG_MAP)
        return float(found["data"][names.TIME_SCALE_KEY])
    except (errors.ClusterError, KeyError, ValueError):
        return 1.0
