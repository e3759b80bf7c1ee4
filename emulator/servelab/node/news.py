"""What is another since all nodes were looked at last."""

import asyncio


class News:
    """Of one process. ``changed`` is set at every change; ``images`` are nodes with other ones."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.images: set[str] = set()

    def tell(self) -> None:
        """Something of a pool, a node or a pod is another."""
        self.changed.set()

    def tell_images(self, node: str) -> None:
        """A node has an image it did not have, or other weights in its page cache."""
        self.images.add(node)
        self.changed.set()
