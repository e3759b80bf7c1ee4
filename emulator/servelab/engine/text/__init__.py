"""Text and tokens of prompts and answers."""
