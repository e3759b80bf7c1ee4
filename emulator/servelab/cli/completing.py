"""What a shell completes: names that the package knows, beside files where a file can be given."""

from collections.abc import Callable, Iterable, Sequence

import click
from click import shell_completion

from modelserve.catalog import gpus, models, storage
from servelab.sim import reading, running
from servelab.workload import tracefile

Item = shell_completion.CompletionItem
Complete = Callable[[click.Context, click.Parameter, str], list[Item]]


def among(names: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """Complete names that begin as what was typed does, in any case."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
        start = incomplete.lower()
        found = [Item(name) for name in names() if name.lower().startswith(start)]
        return [*found, Item(incomplete, type="file")] if files else found

    return complete


def _models() -> Sequence[str]:
    return [word for model in models.all_models() for word in (model.short_name, model.name)]


def _gpus() -> Sequence[str]:
    return [word for gpu in gpus.all_gpus() for word in (gpu.key, gpu.product_label)]


def _last_of_list(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
    """Names with commas between them: the last is completed."""
    before, comma, last = incomplete.rpartition(",")
    found = (name for name in running.policies() if name.startswith(last))
    return [Item(f"{before}{comma}{name}") for name in found]


MODEL = among(_models)
GPU = among(_gpus)
STORAGE = among(lambda: [each.name for each in storage.all_classes()])
SCENARIO = among(reading.packaged, files=True)
TRACE = among(lambda: tracefile.PACKAGED, files=True)
POLICY = among(running.policies)
POLICIES = _last_of_list
