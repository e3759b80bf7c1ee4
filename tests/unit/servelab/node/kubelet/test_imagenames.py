"""What a kubelet says of an image's name, in the words of the reference grammar."""

import pytest

from servelab.node.kubelet import imagenames

NO = "invalid reference format"
DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    "image",
    [
        "busybox",
        "busybox:1",
        "vllm/vllm-openai:v0.33.0",
        "localhost/engine",
        "127.0.0.1:5000/a/b__c/d-e.f:v1",
        f"registry.example.com/engine@{DIGEST}",
        "Upper/engine",  # taken for a registry
        "[2001:db8::1]:5000/engine",
    ],
)
def test_a_name_that_can_be_read_is_fine(image: str) -> None:
    assert imagenames.wrong(image) == ""


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("Busybox:1", f"{NO}: repository name (library/Busybox) must be lowercase"),
        ("vllm/Engine", f"{NO}: repository name (vllm/Engine) must be lowercase"),
        ("Wrong/Name:v1", f"{NO}: repository name (Name) must be lowercase"),
        ("ghcr.io/a/B:v1", f"{NO}: repository name (a/B) must be lowercase"),
        ("busy box", NO),
        ("engine:", NO),
        ("engine:a:b", NO),
        ("engine@sha256:abc", NO),
        ("-engine", NO),
        (
            "ab" * 32,
            f"invalid repository name ({'ab' * 32}), cannot specify 64-byte hexadecimal strings",
        ),
    ],
)
def test_what_is_wrong_with_a_name_is_told(image: str, why: str) -> None:
    assert imagenames.wrong(image) == why


@pytest.mark.parametrize(
    ("image", "has"),
    [
        ("busybox", False),
        ("docker.io/library/alpine:3.22", False),
        (f"python@{DIGEST}", False),
        ("nginx", True),
        ("example/busybox", True),
        ("registry.example.com/busybox", True),
    ],
)
def test_official_images_of_systems_and_languages_have_no_entrypoint(image: str, has: bool) -> None:
    assert imagenames.has_entrypoint(image) is has


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("busybox:1.37", ("sh",)),
        ("docker.io/library/ubuntu", ("/bin/bash",)),
        (f"debian@{DIGEST}", ("bash",)),
        ("node", ("node",)),
        ("public.ecr.aws/docker/library/busybox:1", ("sh",)),
        ("mirror.gcr.io/library/alpine", ("/bin/sh",)),
        ("nginx", ()),
        ("public.ecr.aws/busybox", ()),
        ("quay.io/library/debian", ()),
    ],
)
def test_official_images_have_a_command_of_their_own(image: str, command: tuple[str, ...]) -> None:
    assert imagenames.command(image) == command
