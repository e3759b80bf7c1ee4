"""All processes of one installation must run at the same time scale; a ConfigMap says which."""

from modelserve import errors, ports
from modelserve.api import names


async def check(cluster: ports.Cluster, namespace: str, scale: float) -> None:
    """Refuse to run at another scale than ConfigMap ``modelserve-time`` says; without it any goes.

    Raises InputError for another scale or one that is no number, ClusterError if it cannot be read.
    """
    try:
        config = await cluster.get(ports.CONFIG_MAPS, namespace, names.TIME_CONFIG_MAP)
    except errors.NotFound:
        return
    text = str((config.get("data") or {}).get(names.TIME_SCALE_KEY, "1"))
    where = f"ConfigMap {namespace}/{names.TIME_CONFIG_MAP}"
    try:
        published = float(text)
    except ValueError as error:
        raise errors.InputError(
            f"{where} has {names.TIME_SCALE_KEY} {text!r}, which is no number; write e.g. 60"
        ) from error
    if published != scale:
        raise errors.InputError(
            f"time scale {scale:g} is not the {published:g} that {where} says; "
            f"start with --time-scale {published:g}, or change it for all processes at once"
        )
