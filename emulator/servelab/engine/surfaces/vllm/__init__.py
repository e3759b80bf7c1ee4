"""The outside of vLLM 0.33."""
