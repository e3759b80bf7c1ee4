"""How long things take: seeded jitter, and transfers over links (pure)."""
