"""What uvicorn writes into a log, without level and time."""

from http import HTTPStatus

LEVEL = "INFO:     "
STARTED = (
    "Started server process [1]",
    "Waiting for application startup.",
    "Application startup complete.",
)
STOPPED = (
    "Shutting down",
    "Waiting for application shutdown.",
    "Application shutdown complete.",
    "Finished server process [1]",
)


def access(client: str, method: str, target: str, status: int) -> str:
    """A request that was answered."""
    return f'{client} - "{method} {target} HTTP/1.1" {status} {HTTPStatus(status).phrase}'


def listening(port: int) -> str:
    """Where it listens, at the end of its start."""
    return f"Uvicorn running on http://0.0.0.0:{port} (Press CTRL+C to quit)"
