"""``make record-kubelet``: writes recordings of real pods for ``servelab kubelet-check``."""

import asyncio
import sys
from pathlib import Path

import click

from modelserve import errors
from servelab.cluster import reporting
from servelab.recording import cases, node, recorder

DEFAULT_OUT = Path("kubelet-recordings.json")


@click.command("record-kubelet")
@click.option("--cases", "wanted", default="", help="Names, with commas or spaces; default: all.")
@click.option("--file", type=click.Path(path_type=Path), help="The cases; default: all there are.")
@click.option("--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, show_default=True)
@click.option("--times", type=click.IntRange(1), default=1, help="Record each so many times.")
def main(wanted: str, file: Path | None, out: Path, times: int) -> None:
    """Start a real kubelet, create the cases on it, and write what it did to --out.

    Needs Linux, root, and cgroups; kubelet and containerd are built from source once.

    Exit status: 0 when all was recorded, 2 for a wrong case, 3 where no kubelet can be started.
    """
    with reporting.closing(reporting.for_stream()) as reporter:
        try:
            known = cases.read(*([file] if file else []))
            chosen = cases.choose(known, wanted.replace(",", " ").split(), times)
            with node.running(reporter) as real:
                reporter.say(f"recording {len(chosen)} cases")
                document = asyncio.run(recorder.record(real, chosen, reporter.say))
                out.write_text(document)
        except errors.InputError as error:
            raise click.UsageError(str(error)) from error
        except (errors.SetUpError, errors.ClusterError) as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(3)
    click.echo(f"wrote {len(chosen)} recordings to {out}", err=True)


if __name__ == "__main__":
    main(prog_name="record-kubelet")
