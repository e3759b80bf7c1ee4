"""The outside of SGLang 0.5."""
