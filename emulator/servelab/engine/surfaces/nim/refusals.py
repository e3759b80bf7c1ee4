"""How a NIM says no: flat bodies, as the vLLM of its time wrote them."""

from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.vllm import refusals

# Later names of what was once one kind.
_KINDS = {refusals.SCHEMA: refusals.BAD_REQUEST, refusals.UNAVAILABLE: "ServiceUnavailableError"}


def response(refusal: refusals.Refusal) -> Response:
    """The whole answer."""
    return fastapi.document(
        {
            "object": "error",
            "message": str(refusal),
            "type": _KINDS.get(refusal.kind, refusal.kind),
            "param": None,
            "code": refusal.status,
        },
        refusal.status,
    )
