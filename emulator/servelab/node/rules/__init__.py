"""What a kubelet admits, tells and says, word for word. Pure."""
