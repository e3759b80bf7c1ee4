"""The simulator: gateways, engines, cold starts and autoscalers on a virtual clock. Pure."""
