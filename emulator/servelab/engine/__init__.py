"""The mock engine: a pure step-level core; server, exporter and worker processes around it."""
