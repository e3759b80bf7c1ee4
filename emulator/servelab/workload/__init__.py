"""What clients ask for: arrivals with prompt and answer lengths. Pure."""
