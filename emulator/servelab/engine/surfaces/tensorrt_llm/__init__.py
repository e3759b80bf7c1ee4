"""The outside of TensorRT-LLM's ``trtllm-serve``, of 1.3."""
