"""The pure core: requests in, tokens with their times out."""
