"""What both services need from a gRPC server, on `grpc.aio`.

Errors by name, the caller, health, reflection, settings, logs, start and drain. Knows the core
and the contract, neither of the services.
"""
