"""``servelab explain``: what to expect of a model on a GPU."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich import box, table

from modelserve import errors
from modelserve.api.spec import EngineType, Loader, Quantization
from modelserve.catalog import gpus, models
from modelserve.cli import options
from modelserve.decide import coldstart
from servelab.cli import completing
from servelab.explain import answer, question
from servelab.report import paper

OUT = paper.sheet()
_QUANTIZATIONS = click.Choice([each.value for each in Quantization])
_ENGINES = click.Choice([each.value for each in EngineType])
_LOADERS = click.Choice([each.value for each in Loader])
_TOKENS = click.IntRange(1, 10_000_000)


@click.command()
@click.argument("model", required=False, shell_complete=completing.MODEL)
@click.option(
    "--gpu",
    required=True,
    shell_complete=completing.GPU,
    help="Product label, catalogue key or alias, such as h100.",
)
@click.option(
    "--tp",
    type=click.Choice(["1", "2", "4", "8"]),
    default="1",
    show_default=True,
    help="GPUs of one replica.",
)
@click.option("--quantization", type=_QUANTIZATIONS, default="none", show_default=True)
@click.option("--engine", type=_ENGINES, default="vllm", show_default=True)
@click.option(
    "--storage",
    shell_complete=completing.STORAGE,
    help="Storage class the weights come from, such as nvme or s3.",
)
@click.option("--loader", type=_LOADERS, default="default", show_default=True)
@click.option("--max-model-len", type=_TOKENS, help="Default: 8192, or the model's context.")
@click.option(
    "--input",
    "input_tokens",
    type=_TOKENS,
    default=512,
    show_default=True,
    help="Tokens of a typical prompt.",
)
@click.option(
    "--output",
    "output_tokens",
    type=_TOKENS,
    default=256,
    show_default=True,
    help="Tokens of a typical answer.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A config.json to compute the model from; MODEL is then only its name.",
)
@options.printed(names=("-o",))
def explain(
    model: str | None,
    gpu: str,
    tp: str,
    quantization: str,
    engine: str,
    storage: str | None,
    loader: str,
    max_model_len: int | None,
    input_tokens: int,
    output_tokens: int,
    config: Path | None,
    as_json: bool,
) -> None:
    """Say whether MODEL fits a GPU, how fast it is, what a cold start takes, and what limits it."""
    chosen = _model(model, config)
    found = answer.answer(
        question.Question(
            model=chosen,
            gpu=gpus.find(gpu),
            tensor_parallel=int(tp),
            quantization=Quantization(quantization),
            engine=EngineType(engine),
            storage_class=storage,
            loader=Loader(loader),
            max_model_tokens=question.max_model_tokens(chosen, max_model_len),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )
    )
    if as_json:
        click.echo(json.dumps(answer.to_json(found)))
    else:
        _show(found)


def _model(name: str | None, config: Path | None) -> models.Model:
    if config is not None:
        return models.from_config(_read(config), name or config.absolute().parent.name)
    if name is None:
        raise errors.InputError("name a MODEL of the catalogue, or give its config.json: --config")
    return models.find(name)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise errors.InputError(f"cannot read {path} as JSON: {error}") from error
    if not isinstance(document, Mapping):
        raise errors.InputError(f"{path} must hold a JSON object, as a model's config.json does")
    return document


def _show(found: answer.Explanation) -> None:
    verdict = found.fit
    OUT.print(f"{'Fits' if verdict.fits else 'Does not fit'}: {verdict.message}.", soft_wrap=True)
    if verdict.fits:
        OUT.print(answer.room(found), soft_wrap=True)
        _show_steps(found)
        _show_speeds(found)
        OUT.print(f"Capacity: {found.requests_per_s:.2f} requests/s of that length.")
    OUT.print(answer.summary(found), soft_wrap=True)
    if not verdict.fits:
        return
    total_s = found.cold_start.total_s
    OUT.print(f"\nCold start {total_s:.1f} s, with nothing cached on the node:")
    OUT.print(coldstart.explain(found.cold_start_plan), soft_wrap=True)


def _show_steps(found: answer.Explanation) -> None:
    names = [name for name in found.speeds[0].parts.by_name() if name != "prefill"]
    shown = table.Table("batch", title="Step time by part, ms", box=box.SIMPLE_HEAD)
    shown.add_column("step", justify="right")
    for name in (*names, "limit"):
        shown.add_column(name.replace("_", " "), justify="left" if name == "limit" else "right")
    for one in found.speeds:
        parts = one.parts.by_name()
        cells = [_ms(parts[name]) for name in names]
        shown.add_row(str(one.batch), _ms(one.step_s), *cells, one.limit.hardware)
    paper.rows(shown)


def _show_speeds(found: answer.Explanation) -> None:
    shown = table.Table(title="What a client sees", box=box.SIMPLE_HEAD)
    for name in ("batch", "TTFT ms", "TPOT ms", "output tokens/s", "requests/s"):
        shown.add_column(name, justify="left" if name == "batch" else "right")
    for one in found.speeds:
        rates = (f"{one.output_tokens_per_s:.0f}", f"{one.requests_per_s:.2f}")
        shown.add_row(str(one.batch), _ms(one.ttft_s), _ms(one.tpot_s), *rates)
    paper.rows(shown)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
