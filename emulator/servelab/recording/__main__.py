"""``make record-kubelet``: writes recordings of real pods for ``servelab kubelet-check``."""

import asyncio
import sys
from pathlib import Path

import click

from modelserve import errors
from servelab.cluster import reporting
from servelab.recording import cases, chance, keeping, node, recorder

DEFAULT_OUT = Path("kubelet-recordings.json")


@click.command("record-kubelet")
@click.option("--cases", "wanted", default="", help="Names, with commas or spaces; default: all.")
@click.option("--file", type=click.Path(path_type=Path), help="The cases; default: all there are.")
@click.option("--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, show_default=True)
@click.option("--times", type=click.IntRange(1), default=1, help="Record each so many times.")
@click.option("--chance", "drawn", type=click.IntRange(0), default=0, help="So many by chance.")
@click.option("--seed", default=1, show_default=True, help="Of those by chance.")
def main(wanted: str, file: Path | None, out: Path, times: int, drawn: int, seed: int) -> None:
    """Start a real kubelet, create the cases on it, and write what it did to --out.

    Each recording is written as soon as it is finished, so what there is stays, whatever happens.
    Needs Linux, root, and cgroups; kubelet and containerd are built from source once.

    Exit status: 0 when all was recorded, 1 when some cases are missing (they are named), 2 for a
    wrong case, 3 where no kubelet can be started.
    """
    with reporting.closing(reporting.for_stream()) as reporter:
        try:
            known = chance.draw(drawn, seed) if drawn else cases.read(*([file] if file else []))
            chosen = cases.choose(known, wanted.replace(",", " ").split(), times)
            kept = keeping.Kept(out, [case.name for case in chosen])
            with node.running(reporter) as real:
                reporter.say(f"recording {len(chosen)} cases")
                try:
                    asyncio.run(recorder.record(real, chosen, kept, reporter.say))
                finally:
                    click.echo(kept.told(), err=True)
        except errors.InputError as error:
            raise click.UsageError(str(error)) from error
        except (errors.SetUpError, errors.ClusterError) as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(3)
    sys.exit(1 if kept.missing else 0)


if __name__ == "__main__":
    main(prog_name="record-kubelet")
