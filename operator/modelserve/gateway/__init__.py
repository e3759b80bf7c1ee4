"""The gateway: one OpenAI-compatible address for all models, at zero or not."""
