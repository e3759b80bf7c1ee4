"""The outside of NVIDIA NIM for LLMs 1.x."""
