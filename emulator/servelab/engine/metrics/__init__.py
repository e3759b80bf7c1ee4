"""What an engine exports: one module per engine's names."""
