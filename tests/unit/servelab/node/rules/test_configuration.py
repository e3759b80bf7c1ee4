"""What containers take their environment from."""

from typing import Any

from servelab.node.pods import podspec
from servelab.node.rules import configuration


def container(**raw: Any) -> podspec.Container:
    return podspec.Container("a", "b:1", "Always", False, False, (), {"name": "a", **raw})


def test_references_are_found_and_optional_ones_left_out() -> None:
    spec = container(
        envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s", "optional": True}}],
        env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}],
    )
    assert configuration.references(spec) == [
        configuration.Reference("ConfigMap", "c"),
        configuration.Reference("Secret", "t", ("k",)),
    ]


def test_the_first_missing_one_is_told_in_a_kubelets_words() -> None:
    wanted = [
        configuration.Reference("ConfigMap", "c"),
        configuration.Reference("Secret", "t", ("k",)),
    ]
    found = {("ConfigMap", "c"): frozenset({"x"}), ("Secret", "t"): frozenset({"x"})}
    assert configuration.fault("d", wanted, {}) == 'configmap "c" not found'
    assert configuration.fault("d", wanted, found) == "couldn't find key k in Secret d/t"
    assert configuration.fault("d", wanted[:1], found) == ""


def volumes_of(*volumes: Any, mounted: str = "abcdefg") -> list[configuration.Volume]:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in mounted]
    one = {"name": "m", "image": "b:1", "volumeMounts": mounts}
    meta = {"namespace": "d", "name": "p", "uid": "u"}
    pod = podspec.parse({"metadata": meta, "spec": {"containers": [one], "volumes": [*volumes]}})
    return list(configuration.volumes(pod))


FILES = [
    {"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
    {"name": "b", "secret": {"secretName": "s"}},
    {"name": "d", "secret": {"secretName": "t", "optional": True}},
    {"name": "e", "emptyDir": {}},
    {"name": "f", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
]


def test_volumes_of_configmaps_and_secrets_are_found() -> None:
    assert volumes_of(*FILES) == [
        configuration.Volume("a", (configuration.Reference("ConfigMap", "c", ("k",)),)),
        configuration.Volume("b", (configuration.Reference("Secret", "s"),)),
    ]


def test_a_volume_that_no_container_mounts_is_not_set_up() -> None:
    assert [volume.name for volume in volumes_of(*FILES, mounted="b")] == ["b"]


def test_each_volume_that_lacks_something_is_told_by_itself() -> None:
    found = {("ConfigMap", "c"): frozenset({"x"})}
    assert configuration.mount_faults("d", volumes_of(*FILES), found) == [
        'MountVolume.SetUp failed for volume "a" : configmap references non-existent config key: k',
        'MountVolume.SetUp failed for volume "b" : secret "s" not found',
    ]


def test_a_projected_volume_tells_all_that_it_lacks() -> None:
    sources = [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]
    wanted = volumes_of({"name": "a", "projected": {"sources": sources}})
    assert configuration.mount_faults("d", wanted, {}) == [
        'MountVolume.SetUp failed for volume "a" : [configmap "c" not found, secret "s" not found]'
    ]


def test_a_claim_is_to_be_there_and_bound() -> None:
    wanted = volumes_of({"name": "a", "persistentVolumeClaim": {"claimName": "c"}})
    key = (configuration.CLAIM, "c")
    assert configuration.claim_fault("d", wanted, {}).endswith(
        "failed to process volumes=[a]: error processing PVC d/c: failed to fetch PVC from API "
        'server: persistentvolumeclaims "c" not found'
    )
    unbound = configuration.claim_fault("d", wanted, {key: frozenset({"Pending"})})
    assert unbound.endswith("error processing PVC d/c: PVC is not bound")
    assert not configuration.claim_fault("d", wanted, {key: frozenset({"Bound"})})


def test_a_path_with_a_variable_that_nobody_gives_is_told() -> None:
    mounts = [{"name": "v", "mountPath": "/v", "subPathExpr": "$(HOME)/$$(X)/$(NOPE)"}]
    spec = container(volumeMounts=mounts, env=[{"name": "HOME", "value": "h"}])
    assert configuration.path_fault(spec, {}) == "missing value for NOPE"
    whole = container(volumeMounts=mounts[:1], envFrom=[{"configMapRef": {"name": "c"}}])
    assert not configuration.path_fault(whole, {("ConfigMap", "c"): frozenset({"HOME", "NOPE"})})
