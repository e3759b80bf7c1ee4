"""The list of models as vLLM tells it, and whoever serves with vLLM's code."""

from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.surface import Host


def listing(host: Host, owner: str, root: str, permission_name: str) -> Response:
    """The one model; ``root`` is what it is served from."""
    created = host.created_unix_s
    permission = {
        "id": f"modelperm-{permission_name}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    model = {
        "id": host.served.name,
        "object": "model",
        "created": created,
        "owned_by": owner,
        "root": root,
        "parent": None,
        "max_model_len": host.served.max_model_tokens,
        "permission": [permission],
    }
    return fastapi.document({"object": "list", "data": [model]})
