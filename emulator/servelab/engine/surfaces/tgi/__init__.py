"""The outside of Text Generation Inference 3: its router, which is axum on hyper."""
