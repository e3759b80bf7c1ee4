"""What a pod finds on its node."""

from dataclasses import dataclass

from servelab.node.machines import images
from servelab.timing import transfers


@dataclass(frozen=True, slots=True)
class Host:
    """Its address, its images, the transfers of its pods, and how fast time passes."""

    ip: str
    images: images.NodeImages
    transfers: transfers.Transfers
    scale: float
