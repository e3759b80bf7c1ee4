"""GPUs of emulated nodes: which they are, who has them, and what their sensors read (pure)."""
