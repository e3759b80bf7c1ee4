"""The programs a container has, each a function of what it sees, its words and its input."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from servelab.node.shell import files, listing, tools
from servelab.node.shell.inside import Inside, Result

Program = Callable[[Inside, Sequence[str], str], Result]


def _env(inside: Inside, words: Sequence[str], text: str) -> Result:
    return Result("".join(f"{name}={value}\n" for name, value in inside.env.items()))


def _printenv(inside: Inside, words: Sequence[str], text: str) -> Result:
    if not words:
        return _env(inside, words, text)
    found = [inside.env[name] for name in words if name in inside.env]
    return Result(
        "".join(f"{value}\n" for value in found), code=0 if len(found) == len(words) else 1
    )


def _echo(inside: Inside, words: Sequence[str], text: str) -> Result:
    if words[:1] == ["-n"]:
        return Result(" ".join(words[1:]))
    return Result(" ".join(words) + "\n")


def _hostname(inside: Inside, words: Sequence[str], text: str) -> Result:
    if "-i" in words or "-I" in words:
        return Result(f"{inside.pod_ip} \n" if "-I" in words else f"{inside.pod_ip}\n")
    return Result(f"{inside.hostname}\n")


def _date(inside: Inside, words: Sequence[str], text: str) -> Result:
    now = datetime.fromtimestamp(inside.now_unix_s, UTC)
    form = next((word[1:] for word in words if word.startswith("+")), "")
    if form:
        return Result(now.strftime(form.replace("%s", str(int(inside.now_unix_s)))) + "\n")
    return Result(f"{now:%a %b} {now.day:>2} {now:%H:%M:%S} UTC {now:%Y}\n")


def _uname(inside: Inside, words: Sequence[str], text: str) -> Result:
    if "-a" in words:
        return Result(f"Linux {inside.hostname} {inside.kernel} #1 SMP x86_64 GNU/Linux\n")
    return Result(
        {"-r": inside.kernel, "-n": inside.hostname, "-m": "x86_64"}.get(
            words[0] if words else "", "Linux"
        )
        + "\n"
    )


def _nproc(inside: Inside, words: Sequence[str], text: str) -> Result:
    return Result(f"{inside.cpus}\n")


def _id(inside: Inside, words: Sequence[str], text: str) -> Result:
    return Result("0\n" if "-u" in words else "uid=0(root) gid=0(root) groups=0(root)\n")


def _free(inside: Inside, words: Sequence[str], text: str) -> Result:
    unit = {"-b": 1, "-m": 1024**2, "-g": 1024**3}.get(words[0] if words else "", 1024)
    total, used = inside.memory_bytes // unit, inside.memory_used_bytes // unit
    heads = ("total", "used", "free", "shared", "buff/cache", "available")
    cells = (total, used, total - used, 0, 0, total - used)
    return Result(
        f"{'':<7}" + "".join(f"{head:>13}" for head in heads).rstrip() + "\n"
        f"{'Mem:':<7}" + "".join(f"{cell:>13}" for cell in cells) + "\n"
        f"{'Swap:':<7}" + "".join(f"{cell:>13}" for cell in (0, 0, 0)) + "\n"
    )


def _which(inside: Inside, words: Sequence[str], text: str) -> Result:
    found = [f"/usr/bin/{word}\n" for word in words if exists(inside, word)]
    return Result("".join(found), code=0 if len(found) == len(words) else 1)


def _sleep(inside: Inside, words: Sequence[str], text: str) -> Result:
    try:
        return Result(pause_s=sum(max(0.0, float(word.removesuffix("s"))) for word in words))
    except ValueError:
        return Result(err=f"sleep: invalid time interval '{' '.join(words)}'\n", code=1)


def _smi(inside: Inside, words: Sequence[str], text: str) -> Result:
    assert inside.nvidia is not None
    return tools.nvidia_smi(inside.nvidia, words)


PROGRAMS: Mapping[str, Program] = {
    "cat": listing.cat,
    "date": _date,
    "echo": _echo,
    "env": _env,
    "false": lambda inside, words, text: Result(code=1),
    "free": _free,
    "grep": tools.grep,
    "head": tools.head,
    "hostname": _hostname,
    "id": _id,
    "ls": listing.ls,
    "nproc": _nproc,
    "nvidia-smi": _smi,
    "printenv": _printenv,
    "ps": tools.ps,
    "pwd": lambda inside, words, text: Result("/\n"),
    "sleep": _sleep,
    "tail": tools.tail,
    "true": lambda inside, words, text: Result(),
    "uname": _uname,
    "wc": tools.wc,
    "which": _which,
    "whoami": lambda inside, words, text: Result("root\n"),
}
# Programs that read their input if they are given no file, and the words that are none.
FILTERS = {"cat": 0, "head": 0, "tail": 0, "wc": 0, "grep": 1}
# The one that tells of rates.
MEASURES = "nvidia-smi"
SHELLS = ("sh", "bash", "dash", "ash")
_PATHS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin")


def name_of(inside: Inside, word: str) -> str:
    """The program that a word names, by itself or by path; empty if there is none."""
    path, slash, name = word.rpartition("/")
    if slash and path not in _PATHS:
        return ""
    return name if exists(inside, name) else ""


def exists(inside: Inside, name: str) -> bool:
    """Whether there is a program of that name. Without a driver there is no tool of its."""
    if name == "nvidia-smi":
        return inside.nvidia is not None
    return name in PROGRAMS or name in SHELLS


def is_path(inside: Inside, word: str) -> str:
    """What a word with a slash leads to: ``file``, ``directory`` or nothing."""
    found = files.of(inside)
    if word in found:
        return "file"
    return "directory" if word.rstrip("/") in files.directories(inside, found) else ""
