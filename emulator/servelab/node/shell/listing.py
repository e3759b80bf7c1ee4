"""``ls`` and ``cat``."""

from collections.abc import Iterable, Mapping, Sequence

from servelab.node.shell import files
from servelab.node.shell.inside import Inside, Result


def cat(inside: Inside, words: Sequence[str], text: str) -> Result:
    """Files one after the other; without a name, the input."""
    names = [word for word in words if not word.startswith("-") or word == "-"]
    if not names:
        return Result(text)
    found = files.of(inside)
    known = files.directories(inside, found)
    out, err = [], []
    for name in names:
        path = absolute(name)
        if name == "-":
            out.append(text)
        elif path in found:
            out.append(found[path])
        else:
            err.append(f"cat: {name}: {'Is a directory' if path in known else _MISSING}\n")
    return Result("".join(out), "".join(err), 1 if err else 0)


def ls(inside: Inside, words: Sequence[str], text: str) -> Result:
    """Names, one a line, as where the output is no terminal."""
    long = any("l" in word for word in words if word.startswith("-"))
    names = [word for word in words if not word.startswith("-")] or ["."]
    found = files.of(inside)
    known = files.directories(inside, found)
    out, err = [], []
    for name in names:
        path = absolute(name)
        if path in known:
            start = path.rstrip("/")
            lines = (_line(f"{start}/{e}", found, long=long) for e in _entries(path, found, known))
            out.append((f"{name}:\n" if len(names) > 1 else "") + "".join(lines))
        elif path in found:
            out.append(_line(path, found, long=True) if long else f"{name}\n")
        else:
            err.append(f"ls: cannot access '{name}': {_MISSING}\n")
    return Result("\n".join(out) if len(out) > 1 else "".join(out), "".join(err), 2 if err else 0)


_MISSING = "No such file or directory"


def absolute(name: str) -> str:
    """A path from the root on; that is also where a shell stands."""
    parts = list[str]()
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _entries(path: str, found: Iterable[str], known: Iterable[str]) -> list[str]:
    start = path.rstrip("/") + "/"
    below = (each[len(start) :] for each in (*found, *known) if each.startswith(start))
    return sorted({name for name in below if name and "/" not in name})


def _line(path: str, found: Mapping[str, str], *, long: bool) -> str:
    name = path.rpartition("/")[2]
    if not long:
        return f"{name}\n"
    size = len(found.get(path, ""))
    mode, links = ("-rw-r--r--", 1) if path in found else ("drwxr-xr-x", 2)
    return f"{mode} {links} root root {size:>6} Jan  1 00:00 {name}\n"
