"""What a run shows people: percentiles, tables, charts of characters. Pure."""
