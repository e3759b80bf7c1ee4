"""What containers take their environment from."""

from typing import Any

from servelab.node import configuration, podspec


def container(**raw: Any) -> podspec.Container:
    return podspec.Container("a", "b:1", "Always", False, False, (), {"name": "a", **raw})


def test_references_are_found_and_optional_ones_left_out() -> None:
    spec = container(
        envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s", "optional": True}}],
        env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}],
    )
    assert configuration.references(spec) == [
        configuration.Reference("ConfigMap", "c"),
        configuration.Reference("Secret", "t", "k"),
    ]


def test_the_first_missing_one_is_told_in_a_kubelets_words() -> None:
    wanted = [
        configuration.Reference("ConfigMap", "c"),
        configuration.Reference("Secret", "t", "k"),
    ]
    found = {("ConfigMap", "c"): frozenset({"x"}), ("Secret", "t"): frozenset({"x"})}
    assert configuration.fault("d", wanted, {}) == 'configmap "c" not found'
    assert configuration.fault("d", wanted, found) == "couldn't find key k in Secret d/t"
    assert configuration.fault("d", wanted[:1], found) == ""


def test_volumes_of_configmaps_and_secrets_are_found() -> None:
    volumes = [
        {"name": "a", "configMap": {"name": "c"}},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "d", "secret": {"secretName": "t", "optional": True}},
        {"name": "e", "emptyDir": {}},
    ]
    meta = {"namespace": "d", "name": "p", "uid": "u"}
    pod = podspec.parse({"metadata": meta, "spec": {"containers": [], "volumes": volumes}})
    assert configuration.volumes(pod) == [
        ("a", configuration.Reference("ConfigMap", "c")),
        ("b", configuration.Reference("Secret", "s")),
    ]
