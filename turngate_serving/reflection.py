"""Server reflection under both of its names, so that grpcurl works without the protos at hand.

The library ships `v1alpha`. `v1` has the same messages under another package: it is the same
servicer, registered under the other name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc import aio
from grpc_reflection.v1alpha import reflection, reflection_pb2

from turngate_serving.drain import Drain

_V1ALPHA = "grpc.reflection.v1alpha"
_V1 = "grpc.reflection.v1"
SERVICE_NAMES = (f"{_V1ALPHA}.ServerReflection", f"{_V1}.ServerReflection")


def add_reflection(server: aio.Server, services: Sequence[str], drain: Drain) -> None:
    """Register reflection of the named services, and of itself."""
    _describe_v1()
    servicer = reflection.aio.ReflectionServicer((*services, *SERVICE_NAMES))

    async def info(
        requests: AsyncIterator[reflection_pb2.ServerReflectionRequest],
        context: aio.ServicerContext[
            reflection_pb2.ServerReflectionRequest, reflection_pb2.ServerReflectionResponse
        ],
    ) -> AsyncIterator[reflection_pb2.ServerReflectionResponse]:
        served = drain.while_serving(requests)
        async for response in servicer.ServerReflectionInfo(served, context):
            yield response

    handler = grpc.stream_stream_rpc_method_handler(
        info,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": handler})
            for name in SERVICE_NAMES
        ]
    )


def _describe_v1() -> None:
    """Make `v1` known to the descriptor pool: tools ask for the description of all they see."""
    pool = descriptor_pool.Default()
    name = "grpc/reflection/v1/reflection.proto"
    try:
        pool.FindFileByName(name)
    except KeyError:
        alpha = reflection_pb2.DESCRIPTOR.serialized_pb
        described = FileDescriptorProto.FromString(alpha)
        described.name = name
        described.package = _V1
        for message in described.message_type:
            for field in (field for field in message.field if field.type_name):
                field.type_name = field.type_name.replace(f".{_V1ALPHA}.", f".{_V1}.")
        for method in described.service[0].method:
            method.input_type = method.input_type.replace(f".{_V1ALPHA}.", f".{_V1}.")
            method.output_type = method.output_type.replace(f".{_V1ALPHA}.", f".{_V1}.")
        pool.AddSerializedFile(described.SerializeToString())
