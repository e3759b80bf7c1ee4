"""The nodes that this process plays, what they have, and which of them are its own."""
