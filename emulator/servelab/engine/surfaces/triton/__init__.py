"""The outside of Triton 2.61 (25.09) with the TensorRT-LLM backend: two front ends, one engine."""
