"""RunnerService over gRPC: checks requests, translates, and hands over."""
