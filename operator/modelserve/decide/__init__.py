"""From observation to decision. Pure: time and chance are arguments."""
