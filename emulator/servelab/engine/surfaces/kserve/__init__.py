"""The outside of KServe's model server around vLLM: the runtime ``kserve/huggingfaceserver``."""
