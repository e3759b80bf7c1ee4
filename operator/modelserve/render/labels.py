"""Labels of everything that belongs to a ModelServe, and the selector of its pods."""

from modelserve import ports
from modelserve.api import names

# What the operator's watches of children ask the API server for.
CHILDREN = f"{names.LABEL_MANAGED_BY}={names.MANAGER}"


def of_children(name: str) -> dict[str, str]:
    """Labels of Deployment, Service and pods of the ModelServe ``name``."""
    return {
        names.LABEL_NAME: "modelserve",
        names.LABEL_INSTANCE: name,
        names.LABEL_COMPONENT: "engine",
        names.LABEL_MANAGED_BY: names.MANAGER,
        names.LABEL_MODELSERVE: name,
    }


def selector(name: str) -> dict[str, str]:
    """The labels that select the pods; immutable in a Deployment, so as few as possible."""
    return {names.LABEL_MODELSERVE: name}


def selector_text(name: str) -> str:
    """The selector as ``status.selector`` says it for ``/scale``."""
    return ",".join(f"{key}={value}" for key, value in selector(name).items())


def owner_reference(modelserve: ports.Object) -> dict[str, object]:
    """The controller reference that makes children go with the ModelServe."""
    metadata = modelserve["metadata"]
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_orphan(child: ports.Object) -> bool:
    """Whether it was the child of a ModelServe of its name, left by a delete that kept it."""
    metadata = child["metadata"]
    found = metadata.get("labels") or {}
    controlled = any(r.get("controller") for r in metadata.get("ownerReferences") or ())
    expected = of_children(metadata["name"])
    return not controlled and all(found.get(name) == value for name, value in expected.items())


def owned_by(child: ports.Object, modelserve: ports.Object) -> bool:
    """Whether ``modelserve`` is the controller of ``child``."""
    uid = modelserve["metadata"]["uid"]
    references = child["metadata"].get("ownerReferences") or ()
    return any(r.get("controller") and r.get("uid") == uid for r in references)
