"""Rules that broker, runner and clients share.

Pure: no I/O, no clock, no chance, no gRPC and no protobuf; nothing of the project is imported.
"""
