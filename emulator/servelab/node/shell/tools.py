"""``ps``, ``nvidia-smi`` and the filters of text."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime

from servelab.node.gpus import smi
from servelab.node.shell import files, listing, patterns
from servelab.node.shell.inside import Inside, Process, Result

_HELP = "Please run 'nvidia-smi -h' for help.\n"


def nvidia_smi(view: smi.View, words: Sequence[str]) -> Result:
    """The table; ``-L``; ``--query-gpu`` and ``--query-compute-apps`` with ``--format``."""
    options = dict(_option(word) for word in words)
    if "-i" in words:
        return _of_one(view, words)
    if options.keys() & {"-L", "--list-gpus"}:
        return Result(smi.listing(view))
    form = [part.strip() for part in options.get("--format", "").split(",")]
    for name, ask in (("--query-gpu", smi.query), ("--query-compute-apps", smi.processes)):
        if name in options:
            if "csv" not in form:
                return (
                    Result(f'Option "{name}" requires "--format=csv" to be given.\n', code=2)
                    if not form[0]
                    else Result(f"Invalid format: {form[0]}\n", code=2)
                )
            text, fault = ask(view, [part.strip() for part in options[name].split(",")], form)
            return Result(fault or text, code=2 if fault else 0)
    unknown = next(iter(options), None)
    if unknown is not None:
        return Result(f"Invalid combination of input arguments. {_HELP}\n", code=6)
    return Result(smi.table(view))


def _of_one(view: smi.View, words: Sequence[str]) -> Result:
    """``-i N`` or ``-i UUID``."""
    at = list(words).index("-i")
    wanted = words[at + 1] if at + 1 < len(words) else ""
    chosen = [
        found
        for place, found in enumerate(view.gpus)
        if wanted in (str(place), found.device.uuid, found.device.bus_id)
    ]
    if not chosen:
        return Result("No devices were found\n", code=6)
    rest = [*words[:at], *words[at + 2 :]]
    kept = [part for found in chosen for part in view.cut(found)]
    return nvidia_smi(dataclasses.replace(view, gpus=chosen, slices=kept), rest)


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def ps(inside: Inside, words: Sequence[str], text: str) -> Result:
    """``ps aux``, ``ps -ef`` and plain ``ps``."""
    options = "".join(words).replace("-", "")
    lines = []
    if "u" in options:
        heads = "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"
        lines = [heads, *(_aux(inside, each) for each in inside.processes)]
    elif "f" in options:
        heads = "UID          PID    PPID  C STIME TTY          TIME CMD"
        lines = [heads, *(_full(inside, each) for each in inside.processes)]
    else:
        lines = ["    PID TTY          TIME CMD"]
        for each in inside.processes:
            lines.append(f"{each.pid:>7} ?        {_hours(each.cpu_s)} {each.command.split()[0]}")
    return Result("".join(f"{line}\n" for line in lines))


def head(inside: Inside, words: Sequence[str], text: str) -> Result:
    """The first lines."""
    count, found = _lines_of(inside, words, text, "head")
    return found if found.code else Result("".join(found.out.splitlines(keepends=True)[:count]))


def tail(inside: Inside, words: Sequence[str], text: str) -> Result:
    """The last lines."""
    count, found = _lines_of(inside, words, text, "tail")
    lines = found.out.splitlines(keepends=True)
    return found if found.code else Result("".join(lines[-count:] if count else ()))


def wc(inside: Inside, words: Sequence[str], text: str) -> Result:
    """Lines, words and bytes; with ``-l`` lines alone."""
    names = [word for word in words if not word.startswith("-")]
    found = listing.cat(inside, names, text)
    if found.code:
        return Result(err=found.err.replace("cat:", "wc:"), code=1)
    counts = [found.out.count("\n"), len(found.out.split()), len(found.out.encode())]
    chosen = counts[:1] if "-l" in words else counts
    name = f" {names[0]}" if names else ""
    return Result(" ".join(str(count) for count in chosen) + f"{name}\n")


def grep(inside: Inside, words: Sequence[str], text: str) -> Result:
    """Lines with a pattern; ``-i``, ``-v``, ``-c``, ``-q``, ``-E`` and ``-F``."""
    options = "".join(word[1:] for word in words if word.startswith("-"))
    rest = [word for word in words if not word.startswith("-")]
    if not rest:
        return Result(err="Usage: grep [OPTION]... PATTERNS [FILE]...\n", code=2)
    if len(rest[0]) > patterns.MOST_CHARACTERS:
        return Result(err="grep: Regular expression too big\n", code=2)
    ignoring = "i" in options
    wanted = patterns.parse(
        rest[0], extended="E" in options, plain="F" in options, ignore_case=ignoring
    )
    found = listing.cat(inside, rest[1:], text)
    lines = [
        line
        for line in found.out.splitlines()
        if patterns.matches(wanted, line, ignore_case=ignoring) is not ("v" in options)
    ]
    out = f"{len(lines)}\n" if "c" in options else "".join(f"{line}\n" for line in lines)
    code = 2 if found.code else 0 if lines else 1
    return Result("" if "q" in options else out, found.err.replace("cat:", "grep:"), code)


def _lines_of(inside: Inside, words: Sequence[str], text: str, name: str) -> tuple[int, Result]:
    """How many lines are asked for, and the text they are of."""
    count, rest = 10, list(words)
    for at, word in enumerate(words):
        number = words[at + 1] if word == "-n" and at + 1 < len(words) else word.lstrip("-n")
        if word.startswith("-") and number.isdecimal():
            count = int(number)
            rest = [*words[:at], *words[at + (2 if word == "-n" else 1) :]]
            break
    found = listing.cat(inside, rest, text)
    return count, Result(found.out, found.err.replace("cat:", f"{name}:"), found.code)


def _aux(inside: Inside, each: Process) -> str:
    age_s = max(1.0, inside.now_unix_s - each.started_unix_s)
    cpu = 100 * each.cpu_s / age_s
    memory = 100 * each.resident_bytes / inside.memory_bytes
    started = datetime.fromtimestamp(each.started_unix_s, UTC)
    return (
        f"root     {each.pid:>7} {cpu:>4.1f} {memory:>4.1f} {each.virtual_bytes // files.KIB:>6} "
        f"{each.resident_bytes // files.KIB:>5} ?        Ssl  {started:%H:%M} "
        f"{_minutes(each.cpu_s):>6} {each.command}"
    )


def _full(inside: Inside, each: Process) -> str:
    age_s = max(1.0, inside.now_unix_s - each.started_unix_s)
    started = datetime.fromtimestamp(each.started_unix_s, UTC)
    return (
        f"root     {each.pid:>7} {each.parent:>7} {int(100 * each.cpu_s / age_s):>2} "
        f"{started:%H:%M} ?        {_hours(each.cpu_s)} {each.command}"
    )


def _minutes(cpu_s: float) -> str:
    return f"{int(cpu_s) // 60}:{int(cpu_s) % 60:02d}"


def _hours(cpu_s: float) -> str:
    minutes, seconds = divmod(int(cpu_s), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
