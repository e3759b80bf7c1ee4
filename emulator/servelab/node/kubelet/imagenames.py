"""What an image's name tells: whether it can be read, and what its arguments are to it.

After ParseNormalizedNamed of github.com/distribution/reference.
"""

import re
from collections.abc import Mapping, Sequence

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN}/)?{_PART}(?:/{_PART})*(?::[\w][\w.-]{{0,127}})?(?:@{_DIGEST})?"
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_HUB = "docker.io"
# Where Docker's official images are, at the Hub and its mirrors.
_OFFICIAL = {
    _HUB: "library/",
    "mirror.gcr.io": "library/",
    "public.ecr.aws": "docker/library/",
}
# Official images that run their arguments as a command, and theirs if there are none (their
# Dockerfiles; that of node has an entrypoint which comes to the same).
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "almalinux": ("/bin/bash",),
    "alpine": ("/bin/sh",),
    "amazonlinux": ("/bin/bash",),
    "busybox": ("sh",),
    "debian": ("bash",),
    "fedora": ("/bin/bash",),
    "gcc": ("bash",),
    "golang": ("bash",),
    "hello-world": ("/hello",),
    "node": ("node",),
    "perl": ("perl", "-de0"),
    "python": ("python3",),
    "rockylinux": ("/bin/bash",),
    "ruby": ("irb",),
    "rust": ("bash",),
    "ubuntu": ("/bin/bash",),
}


def wrong(image: str) -> str:
    """What is wrong with the name; empty if nothing is."""
    if _IDENTIFIER.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, path = _split(image)
    name = path.partition(":")[0]
    if name.lower() != name:
        return f"invalid reference format: repository name ({name}) must be lowercase"
    if _REFERENCE.fullmatch(f"{domain}/{path}"):
        return ""
    if _REFERENCE.fullmatch(f"{domain}/{path}".lower()):
        return "invalid reference format: repository name must be lowercase"
    return "invalid reference format"


def has_entrypoint(image: str) -> bool:
    """Whether an image has, or may have, a program of its own that arguments are given to."""
    return not command(image)


def command(image: str) -> Sequence[str]:
    """What an image runs that is given neither command nor arguments; empty where not known."""
    domain, path = _split(image)
    prefix = _OFFICIAL.get(domain)
    if prefix is None or not path.startswith(prefix):
        return ()
    return _COMMANDS.get(path.removeprefix(prefix).partition("@")[0].partition(":")[0], ())


def _split(image: str) -> tuple[str, str]:
    """The registry, and the rest; a name without one is Docker Hub's."""
    first, slash, rest = image.partition("/")
    if not slash:
        return _HUB, f"library/{image}"
    if first == "localhost" or any(c in first for c in ".:") or first.lower() != first:
        domain = _HUB if first == f"index.{_HUB}" else first
        hub = domain == _HUB and "/" not in rest
        return domain, f"library/{rest}" if hub else rest
    return _HUB, image
