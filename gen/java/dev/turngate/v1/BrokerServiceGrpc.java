package dev.turngate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Owns sessions: the conversation tree, the queue gate, forks and supersession, the inbox, watching.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class BrokerServiceGrpc {

  private BrokerServiceGrpc() {}

  public static final String SERVICE_NAME = "turngate.v1.BrokerService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.CreateSessionRequest,
      dev.turngate.v1.CreateSessionResponse> getCreateSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateSession",
      requestType = dev.turngate.v1.CreateSessionRequest.class,
      responseType = dev.turngate.v1.CreateSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.CreateSessionRequest,
      dev.turngate.v1.CreateSessionResponse> getCreateSessionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.CreateSessionRequest, dev.turngate.v1.CreateSessionResponse> getCreateSessionMethod;
    if ((getCreateSessionMethod = BrokerServiceGrpc.getCreateSessionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getCreateSessionMethod = BrokerServiceGrpc.getCreateSessionMethod) == null) {
          BrokerServiceGrpc.getCreateSessionMethod = getCreateSessionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.CreateSessionRequest, dev.turngate.v1.CreateSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.CreateSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.CreateSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("CreateSession"))
              .build();
        }
      }
    }
    return getCreateSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.GetSessionRequest,
      dev.turngate.v1.GetSessionResponse> getGetSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetSession",
      requestType = dev.turngate.v1.GetSessionRequest.class,
      responseType = dev.turngate.v1.GetSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.GetSessionRequest,
      dev.turngate.v1.GetSessionResponse> getGetSessionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.GetSessionRequest, dev.turngate.v1.GetSessionResponse> getGetSessionMethod;
    if ((getGetSessionMethod = BrokerServiceGrpc.getGetSessionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getGetSessionMethod = BrokerServiceGrpc.getGetSessionMethod) == null) {
          BrokerServiceGrpc.getGetSessionMethod = getGetSessionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.GetSessionRequest, dev.turngate.v1.GetSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("GetSession"))
              .build();
        }
      }
    }
    return getGetSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ListSessionsRequest,
      dev.turngate.v1.ListSessionsResponse> getListSessionsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListSessions",
      requestType = dev.turngate.v1.ListSessionsRequest.class,
      responseType = dev.turngate.v1.ListSessionsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ListSessionsRequest,
      dev.turngate.v1.ListSessionsResponse> getListSessionsMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ListSessionsRequest, dev.turngate.v1.ListSessionsResponse> getListSessionsMethod;
    if ((getListSessionsMethod = BrokerServiceGrpc.getListSessionsMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getListSessionsMethod = BrokerServiceGrpc.getListSessionsMethod) == null) {
          BrokerServiceGrpc.getListSessionsMethod = getListSessionsMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ListSessionsRequest, dev.turngate.v1.ListSessionsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListSessions"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListSessionsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListSessionsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ListSessions"))
              .build();
        }
      }
    }
    return getListSessionsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.DeleteSessionRequest,
      dev.turngate.v1.DeleteSessionResponse> getDeleteSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteSession",
      requestType = dev.turngate.v1.DeleteSessionRequest.class,
      responseType = dev.turngate.v1.DeleteSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.DeleteSessionRequest,
      dev.turngate.v1.DeleteSessionResponse> getDeleteSessionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.DeleteSessionRequest, dev.turngate.v1.DeleteSessionResponse> getDeleteSessionMethod;
    if ((getDeleteSessionMethod = BrokerServiceGrpc.getDeleteSessionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getDeleteSessionMethod = BrokerServiceGrpc.getDeleteSessionMethod) == null) {
          BrokerServiceGrpc.getDeleteSessionMethod = getDeleteSessionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.DeleteSessionRequest, dev.turngate.v1.DeleteSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.DeleteSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.DeleteSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("DeleteSession"))
              .build();
        }
      }
    }
    return getDeleteSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ExportSessionRequest,
      dev.turngate.v1.ExportSessionResponse> getExportSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExportSession",
      requestType = dev.turngate.v1.ExportSessionRequest.class,
      responseType = dev.turngate.v1.ExportSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ExportSessionRequest,
      dev.turngate.v1.ExportSessionResponse> getExportSessionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ExportSessionRequest, dev.turngate.v1.ExportSessionResponse> getExportSessionMethod;
    if ((getExportSessionMethod = BrokerServiceGrpc.getExportSessionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getExportSessionMethod = BrokerServiceGrpc.getExportSessionMethod) == null) {
          BrokerServiceGrpc.getExportSessionMethod = getExportSessionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ExportSessionRequest, dev.turngate.v1.ExportSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExportSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ExportSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ExportSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ExportSession"))
              .build();
        }
      }
    }
    return getExportSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ImportSessionRequest,
      dev.turngate.v1.ImportSessionResponse> getImportSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ImportSession",
      requestType = dev.turngate.v1.ImportSessionRequest.class,
      responseType = dev.turngate.v1.ImportSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.CLIENT_STREAMING)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ImportSessionRequest,
      dev.turngate.v1.ImportSessionResponse> getImportSessionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ImportSessionRequest, dev.turngate.v1.ImportSessionResponse> getImportSessionMethod;
    if ((getImportSessionMethod = BrokerServiceGrpc.getImportSessionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getImportSessionMethod = BrokerServiceGrpc.getImportSessionMethod) == null) {
          BrokerServiceGrpc.getImportSessionMethod = getImportSessionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ImportSessionRequest, dev.turngate.v1.ImportSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.CLIENT_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ImportSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ImportSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ImportSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ImportSession"))
              .build();
        }
      }
    }
    return getImportSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.SendMessageRequest,
      dev.turngate.v1.SendMessageResponse> getSendMessageMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SendMessage",
      requestType = dev.turngate.v1.SendMessageRequest.class,
      responseType = dev.turngate.v1.SendMessageResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.SendMessageRequest,
      dev.turngate.v1.SendMessageResponse> getSendMessageMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.SendMessageRequest, dev.turngate.v1.SendMessageResponse> getSendMessageMethod;
    if ((getSendMessageMethod = BrokerServiceGrpc.getSendMessageMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getSendMessageMethod = BrokerServiceGrpc.getSendMessageMethod) == null) {
          BrokerServiceGrpc.getSendMessageMethod = getSendMessageMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.SendMessageRequest, dev.turngate.v1.SendMessageResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SendMessage"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.SendMessageRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.SendMessageResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("SendMessage"))
              .build();
        }
      }
    }
    return getSendMessageMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ListHeldMessagesRequest,
      dev.turngate.v1.ListHeldMessagesResponse> getListHeldMessagesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListHeldMessages",
      requestType = dev.turngate.v1.ListHeldMessagesRequest.class,
      responseType = dev.turngate.v1.ListHeldMessagesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ListHeldMessagesRequest,
      dev.turngate.v1.ListHeldMessagesResponse> getListHeldMessagesMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ListHeldMessagesRequest, dev.turngate.v1.ListHeldMessagesResponse> getListHeldMessagesMethod;
    if ((getListHeldMessagesMethod = BrokerServiceGrpc.getListHeldMessagesMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getListHeldMessagesMethod = BrokerServiceGrpc.getListHeldMessagesMethod) == null) {
          BrokerServiceGrpc.getListHeldMessagesMethod = getListHeldMessagesMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ListHeldMessagesRequest, dev.turngate.v1.ListHeldMessagesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListHeldMessages"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListHeldMessagesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListHeldMessagesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ListHeldMessages"))
              .build();
        }
      }
    }
    return getListHeldMessagesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.UpdateHeldMessageRequest,
      dev.turngate.v1.UpdateHeldMessageResponse> getUpdateHeldMessageMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateHeldMessage",
      requestType = dev.turngate.v1.UpdateHeldMessageRequest.class,
      responseType = dev.turngate.v1.UpdateHeldMessageResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.UpdateHeldMessageRequest,
      dev.turngate.v1.UpdateHeldMessageResponse> getUpdateHeldMessageMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.UpdateHeldMessageRequest, dev.turngate.v1.UpdateHeldMessageResponse> getUpdateHeldMessageMethod;
    if ((getUpdateHeldMessageMethod = BrokerServiceGrpc.getUpdateHeldMessageMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getUpdateHeldMessageMethod = BrokerServiceGrpc.getUpdateHeldMessageMethod) == null) {
          BrokerServiceGrpc.getUpdateHeldMessageMethod = getUpdateHeldMessageMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.UpdateHeldMessageRequest, dev.turngate.v1.UpdateHeldMessageResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateHeldMessage"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.UpdateHeldMessageRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.UpdateHeldMessageResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("UpdateHeldMessage"))
              .build();
        }
      }
    }
    return getUpdateHeldMessageMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.RemoveHeldMessageRequest,
      dev.turngate.v1.RemoveHeldMessageResponse> getRemoveHeldMessageMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RemoveHeldMessage",
      requestType = dev.turngate.v1.RemoveHeldMessageRequest.class,
      responseType = dev.turngate.v1.RemoveHeldMessageResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.RemoveHeldMessageRequest,
      dev.turngate.v1.RemoveHeldMessageResponse> getRemoveHeldMessageMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.RemoveHeldMessageRequest, dev.turngate.v1.RemoveHeldMessageResponse> getRemoveHeldMessageMethod;
    if ((getRemoveHeldMessageMethod = BrokerServiceGrpc.getRemoveHeldMessageMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getRemoveHeldMessageMethod = BrokerServiceGrpc.getRemoveHeldMessageMethod) == null) {
          BrokerServiceGrpc.getRemoveHeldMessageMethod = getRemoveHeldMessageMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.RemoveHeldMessageRequest, dev.turngate.v1.RemoveHeldMessageResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RemoveHeldMessage"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RemoveHeldMessageRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RemoveHeldMessageResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("RemoveHeldMessage"))
              .build();
        }
      }
    }
    return getRemoveHeldMessageMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ResumeQueueRequest,
      dev.turngate.v1.ResumeQueueResponse> getResumeQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ResumeQueue",
      requestType = dev.turngate.v1.ResumeQueueRequest.class,
      responseType = dev.turngate.v1.ResumeQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ResumeQueueRequest,
      dev.turngate.v1.ResumeQueueResponse> getResumeQueueMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ResumeQueueRequest, dev.turngate.v1.ResumeQueueResponse> getResumeQueueMethod;
    if ((getResumeQueueMethod = BrokerServiceGrpc.getResumeQueueMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getResumeQueueMethod = BrokerServiceGrpc.getResumeQueueMethod) == null) {
          BrokerServiceGrpc.getResumeQueueMethod = getResumeQueueMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ResumeQueueRequest, dev.turngate.v1.ResumeQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ResumeQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ResumeQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ResumeQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ResumeQueue"))
              .build();
        }
      }
    }
    return getResumeQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.WatchSessionRequest,
      dev.turngate.v1.WatchSessionResponse> getWatchSessionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchSession",
      requestType = dev.turngate.v1.WatchSessionRequest.class,
      responseType = dev.turngate.v1.WatchSessionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.WatchSessionRequest,
      dev.turngate.v1.WatchSessionResponse> getWatchSessionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.WatchSessionRequest, dev.turngate.v1.WatchSessionResponse> getWatchSessionMethod;
    if ((getWatchSessionMethod = BrokerServiceGrpc.getWatchSessionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getWatchSessionMethod = BrokerServiceGrpc.getWatchSessionMethod) == null) {
          BrokerServiceGrpc.getWatchSessionMethod = getWatchSessionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.WatchSessionRequest, dev.turngate.v1.WatchSessionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchSession"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.WatchSessionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.WatchSessionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("WatchSession"))
              .build();
        }
      }
    }
    return getWatchSessionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.GetRunRequest,
      dev.turngate.v1.GetRunResponse> getGetRunMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetRun",
      requestType = dev.turngate.v1.GetRunRequest.class,
      responseType = dev.turngate.v1.GetRunResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.GetRunRequest,
      dev.turngate.v1.GetRunResponse> getGetRunMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.GetRunRequest, dev.turngate.v1.GetRunResponse> getGetRunMethod;
    if ((getGetRunMethod = BrokerServiceGrpc.getGetRunMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getGetRunMethod = BrokerServiceGrpc.getGetRunMethod) == null) {
          BrokerServiceGrpc.getGetRunMethod = getGetRunMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.GetRunRequest, dev.turngate.v1.GetRunResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetRun"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetRunRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetRunResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("GetRun"))
              .build();
        }
      }
    }
    return getGetRunMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.GetTreeRequest,
      dev.turngate.v1.GetTreeResponse> getGetTreeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTree",
      requestType = dev.turngate.v1.GetTreeRequest.class,
      responseType = dev.turngate.v1.GetTreeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.GetTreeRequest,
      dev.turngate.v1.GetTreeResponse> getGetTreeMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.GetTreeRequest, dev.turngate.v1.GetTreeResponse> getGetTreeMethod;
    if ((getGetTreeMethod = BrokerServiceGrpc.getGetTreeMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getGetTreeMethod = BrokerServiceGrpc.getGetTreeMethod) == null) {
          BrokerServiceGrpc.getGetTreeMethod = getGetTreeMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.GetTreeRequest, dev.turngate.v1.GetTreeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTree"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetTreeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetTreeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("GetTree"))
              .build();
        }
      }
    }
    return getGetTreeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.GetTranscriptRequest,
      dev.turngate.v1.GetTranscriptResponse> getGetTranscriptMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetTranscript",
      requestType = dev.turngate.v1.GetTranscriptRequest.class,
      responseType = dev.turngate.v1.GetTranscriptResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.GetTranscriptRequest,
      dev.turngate.v1.GetTranscriptResponse> getGetTranscriptMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.GetTranscriptRequest, dev.turngate.v1.GetTranscriptResponse> getGetTranscriptMethod;
    if ((getGetTranscriptMethod = BrokerServiceGrpc.getGetTranscriptMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getGetTranscriptMethod = BrokerServiceGrpc.getGetTranscriptMethod) == null) {
          BrokerServiceGrpc.getGetTranscriptMethod = getGetTranscriptMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.GetTranscriptRequest, dev.turngate.v1.GetTranscriptResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetTranscript"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetTranscriptRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetTranscriptResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("GetTranscript"))
              .build();
        }
      }
    }
    return getGetTranscriptMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.SelectBranchRequest,
      dev.turngate.v1.SelectBranchResponse> getSelectBranchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SelectBranch",
      requestType = dev.turngate.v1.SelectBranchRequest.class,
      responseType = dev.turngate.v1.SelectBranchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.SelectBranchRequest,
      dev.turngate.v1.SelectBranchResponse> getSelectBranchMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.SelectBranchRequest, dev.turngate.v1.SelectBranchResponse> getSelectBranchMethod;
    if ((getSelectBranchMethod = BrokerServiceGrpc.getSelectBranchMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getSelectBranchMethod = BrokerServiceGrpc.getSelectBranchMethod) == null) {
          BrokerServiceGrpc.getSelectBranchMethod = getSelectBranchMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.SelectBranchRequest, dev.turngate.v1.SelectBranchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SelectBranch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.SelectBranchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.SelectBranchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("SelectBranch"))
              .build();
        }
      }
    }
    return getSelectBranchMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.SettleToolCallRequest,
      dev.turngate.v1.SettleToolCallResponse> getSettleToolCallMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SettleToolCall",
      requestType = dev.turngate.v1.SettleToolCallRequest.class,
      responseType = dev.turngate.v1.SettleToolCallResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.SettleToolCallRequest,
      dev.turngate.v1.SettleToolCallResponse> getSettleToolCallMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.SettleToolCallRequest, dev.turngate.v1.SettleToolCallResponse> getSettleToolCallMethod;
    if ((getSettleToolCallMethod = BrokerServiceGrpc.getSettleToolCallMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getSettleToolCallMethod = BrokerServiceGrpc.getSettleToolCallMethod) == null) {
          BrokerServiceGrpc.getSettleToolCallMethod = getSettleToolCallMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.SettleToolCallRequest, dev.turngate.v1.SettleToolCallResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SettleToolCall"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.SettleToolCallRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.SettleToolCallResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("SettleToolCall"))
              .build();
        }
      }
    }
    return getSettleToolCallMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.DecideApprovalRequest,
      dev.turngate.v1.DecideApprovalResponse> getDecideApprovalMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DecideApproval",
      requestType = dev.turngate.v1.DecideApprovalRequest.class,
      responseType = dev.turngate.v1.DecideApprovalResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.DecideApprovalRequest,
      dev.turngate.v1.DecideApprovalResponse> getDecideApprovalMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.DecideApprovalRequest, dev.turngate.v1.DecideApprovalResponse> getDecideApprovalMethod;
    if ((getDecideApprovalMethod = BrokerServiceGrpc.getDecideApprovalMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getDecideApprovalMethod = BrokerServiceGrpc.getDecideApprovalMethod) == null) {
          BrokerServiceGrpc.getDecideApprovalMethod = getDecideApprovalMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.DecideApprovalRequest, dev.turngate.v1.DecideApprovalResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DecideApproval"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.DecideApprovalRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.DecideApprovalResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("DecideApproval"))
              .build();
        }
      }
    }
    return getDecideApprovalMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ReportUnhandledRequest,
      dev.turngate.v1.ReportUnhandledResponse> getReportUnhandledMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReportUnhandled",
      requestType = dev.turngate.v1.ReportUnhandledRequest.class,
      responseType = dev.turngate.v1.ReportUnhandledResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ReportUnhandledRequest,
      dev.turngate.v1.ReportUnhandledResponse> getReportUnhandledMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ReportUnhandledRequest, dev.turngate.v1.ReportUnhandledResponse> getReportUnhandledMethod;
    if ((getReportUnhandledMethod = BrokerServiceGrpc.getReportUnhandledMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getReportUnhandledMethod = BrokerServiceGrpc.getReportUnhandledMethod) == null) {
          BrokerServiceGrpc.getReportUnhandledMethod = getReportUnhandledMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ReportUnhandledRequest, dev.turngate.v1.ReportUnhandledResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReportUnhandled"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ReportUnhandledRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ReportUnhandledResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ReportUnhandled"))
              .build();
        }
      }
    }
    return getReportUnhandledMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.CancelInteractionRequest,
      dev.turngate.v1.CancelInteractionResponse> getCancelInteractionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CancelInteraction",
      requestType = dev.turngate.v1.CancelInteractionRequest.class,
      responseType = dev.turngate.v1.CancelInteractionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.CancelInteractionRequest,
      dev.turngate.v1.CancelInteractionResponse> getCancelInteractionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.CancelInteractionRequest, dev.turngate.v1.CancelInteractionResponse> getCancelInteractionMethod;
    if ((getCancelInteractionMethod = BrokerServiceGrpc.getCancelInteractionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getCancelInteractionMethod = BrokerServiceGrpc.getCancelInteractionMethod) == null) {
          BrokerServiceGrpc.getCancelInteractionMethod = getCancelInteractionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.CancelInteractionRequest, dev.turngate.v1.CancelInteractionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CancelInteraction"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.CancelInteractionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.CancelInteractionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("CancelInteraction"))
              .build();
        }
      }
    }
    return getCancelInteractionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ListGrantsRequest,
      dev.turngate.v1.ListGrantsResponse> getListGrantsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListGrants",
      requestType = dev.turngate.v1.ListGrantsRequest.class,
      responseType = dev.turngate.v1.ListGrantsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ListGrantsRequest,
      dev.turngate.v1.ListGrantsResponse> getListGrantsMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ListGrantsRequest, dev.turngate.v1.ListGrantsResponse> getListGrantsMethod;
    if ((getListGrantsMethod = BrokerServiceGrpc.getListGrantsMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getListGrantsMethod = BrokerServiceGrpc.getListGrantsMethod) == null) {
          BrokerServiceGrpc.getListGrantsMethod = getListGrantsMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ListGrantsRequest, dev.turngate.v1.ListGrantsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListGrants"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListGrantsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListGrantsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ListGrants"))
              .build();
        }
      }
    }
    return getListGrantsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.RevokeGrantRequest,
      dev.turngate.v1.RevokeGrantResponse> getRevokeGrantMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RevokeGrant",
      requestType = dev.turngate.v1.RevokeGrantRequest.class,
      responseType = dev.turngate.v1.RevokeGrantResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.RevokeGrantRequest,
      dev.turngate.v1.RevokeGrantResponse> getRevokeGrantMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.RevokeGrantRequest, dev.turngate.v1.RevokeGrantResponse> getRevokeGrantMethod;
    if ((getRevokeGrantMethod = BrokerServiceGrpc.getRevokeGrantMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getRevokeGrantMethod = BrokerServiceGrpc.getRevokeGrantMethod) == null) {
          BrokerServiceGrpc.getRevokeGrantMethod = getRevokeGrantMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.RevokeGrantRequest, dev.turngate.v1.RevokeGrantResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RevokeGrant"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RevokeGrantRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RevokeGrantResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("RevokeGrant"))
              .build();
        }
      }
    }
    return getRevokeGrantMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.GetInteractionRequest,
      dev.turngate.v1.GetInteractionResponse> getGetInteractionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetInteraction",
      requestType = dev.turngate.v1.GetInteractionRequest.class,
      responseType = dev.turngate.v1.GetInteractionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.GetInteractionRequest,
      dev.turngate.v1.GetInteractionResponse> getGetInteractionMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.GetInteractionRequest, dev.turngate.v1.GetInteractionResponse> getGetInteractionMethod;
    if ((getGetInteractionMethod = BrokerServiceGrpc.getGetInteractionMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getGetInteractionMethod = BrokerServiceGrpc.getGetInteractionMethod) == null) {
          BrokerServiceGrpc.getGetInteractionMethod = getGetInteractionMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.GetInteractionRequest, dev.turngate.v1.GetInteractionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetInteraction"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetInteractionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetInteractionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("GetInteraction"))
              .build();
        }
      }
    }
    return getGetInteractionMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ListInteractionsRequest,
      dev.turngate.v1.ListInteractionsResponse> getListInteractionsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListInteractions",
      requestType = dev.turngate.v1.ListInteractionsRequest.class,
      responseType = dev.turngate.v1.ListInteractionsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ListInteractionsRequest,
      dev.turngate.v1.ListInteractionsResponse> getListInteractionsMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ListInteractionsRequest, dev.turngate.v1.ListInteractionsResponse> getListInteractionsMethod;
    if ((getListInteractionsMethod = BrokerServiceGrpc.getListInteractionsMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getListInteractionsMethod = BrokerServiceGrpc.getListInteractionsMethod) == null) {
          BrokerServiceGrpc.getListInteractionsMethod = getListInteractionsMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ListInteractionsRequest, dev.turngate.v1.ListInteractionsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListInteractions"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListInteractionsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ListInteractionsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("ListInteractions"))
              .build();
        }
      }
    }
    return getListInteractionsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.WatchInteractionsRequest,
      dev.turngate.v1.WatchInteractionsResponse> getWatchInteractionsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchInteractions",
      requestType = dev.turngate.v1.WatchInteractionsRequest.class,
      responseType = dev.turngate.v1.WatchInteractionsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.WatchInteractionsRequest,
      dev.turngate.v1.WatchInteractionsResponse> getWatchInteractionsMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.WatchInteractionsRequest, dev.turngate.v1.WatchInteractionsResponse> getWatchInteractionsMethod;
    if ((getWatchInteractionsMethod = BrokerServiceGrpc.getWatchInteractionsMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getWatchInteractionsMethod = BrokerServiceGrpc.getWatchInteractionsMethod) == null) {
          BrokerServiceGrpc.getWatchInteractionsMethod = getWatchInteractionsMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.WatchInteractionsRequest, dev.turngate.v1.WatchInteractionsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchInteractions"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.WatchInteractionsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.WatchInteractionsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("WatchInteractions"))
              .build();
        }
      }
    }
    return getWatchInteractionsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.CancelRunRequest,
      dev.turngate.v1.CancelRunResponse> getCancelRunMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CancelRun",
      requestType = dev.turngate.v1.CancelRunRequest.class,
      responseType = dev.turngate.v1.CancelRunResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.CancelRunRequest,
      dev.turngate.v1.CancelRunResponse> getCancelRunMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.CancelRunRequest, dev.turngate.v1.CancelRunResponse> getCancelRunMethod;
    if ((getCancelRunMethod = BrokerServiceGrpc.getCancelRunMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getCancelRunMethod = BrokerServiceGrpc.getCancelRunMethod) == null) {
          BrokerServiceGrpc.getCancelRunMethod = getCancelRunMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.CancelRunRequest, dev.turngate.v1.CancelRunResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CancelRun"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.CancelRunRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.CancelRunResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("CancelRun"))
              .build();
        }
      }
    }
    return getCancelRunMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.RegenerateRunRequest,
      dev.turngate.v1.RegenerateRunResponse> getRegenerateRunMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RegenerateRun",
      requestType = dev.turngate.v1.RegenerateRunRequest.class,
      responseType = dev.turngate.v1.RegenerateRunResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.RegenerateRunRequest,
      dev.turngate.v1.RegenerateRunResponse> getRegenerateRunMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.RegenerateRunRequest, dev.turngate.v1.RegenerateRunResponse> getRegenerateRunMethod;
    if ((getRegenerateRunMethod = BrokerServiceGrpc.getRegenerateRunMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getRegenerateRunMethod = BrokerServiceGrpc.getRegenerateRunMethod) == null) {
          BrokerServiceGrpc.getRegenerateRunMethod = getRegenerateRunMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.RegenerateRunRequest, dev.turngate.v1.RegenerateRunResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RegenerateRun"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RegenerateRunRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RegenerateRunResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("RegenerateRun"))
              .build();
        }
      }
    }
    return getRegenerateRunMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.RetryRunRequest,
      dev.turngate.v1.RetryRunResponse> getRetryRunMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RetryRun",
      requestType = dev.turngate.v1.RetryRunRequest.class,
      responseType = dev.turngate.v1.RetryRunResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.RetryRunRequest,
      dev.turngate.v1.RetryRunResponse> getRetryRunMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.RetryRunRequest, dev.turngate.v1.RetryRunResponse> getRetryRunMethod;
    if ((getRetryRunMethod = BrokerServiceGrpc.getRetryRunMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getRetryRunMethod = BrokerServiceGrpc.getRetryRunMethod) == null) {
          BrokerServiceGrpc.getRetryRunMethod = getRetryRunMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.RetryRunRequest, dev.turngate.v1.RetryRunResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RetryRun"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RetryRunRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.RetryRunResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("RetryRun"))
              .build();
        }
      }
    }
    return getRetryRunMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.GetServerInfoRequest,
      dev.turngate.v1.GetServerInfoResponse> getGetServerInfoMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetServerInfo",
      requestType = dev.turngate.v1.GetServerInfoRequest.class,
      responseType = dev.turngate.v1.GetServerInfoResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.GetServerInfoRequest,
      dev.turngate.v1.GetServerInfoResponse> getGetServerInfoMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.GetServerInfoRequest, dev.turngate.v1.GetServerInfoResponse> getGetServerInfoMethod;
    if ((getGetServerInfoMethod = BrokerServiceGrpc.getGetServerInfoMethod) == null) {
      synchronized (BrokerServiceGrpc.class) {
        if ((getGetServerInfoMethod = BrokerServiceGrpc.getGetServerInfoMethod) == null) {
          BrokerServiceGrpc.getGetServerInfoMethod = getGetServerInfoMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.GetServerInfoRequest, dev.turngate.v1.GetServerInfoResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetServerInfo"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetServerInfoRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.GetServerInfoResponse.getDefaultInstance()))
              .setSchemaDescriptor(new BrokerServiceMethodDescriptorSupplier("GetServerInfo"))
              .build();
        }
      }
    }
    return getGetServerInfoMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static BrokerServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<BrokerServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<BrokerServiceStub>() {
        @java.lang.Override
        public BrokerServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new BrokerServiceStub(channel, callOptions);
        }
      };
    return BrokerServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static BrokerServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<BrokerServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<BrokerServiceBlockingStub>() {
        @java.lang.Override
        public BrokerServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new BrokerServiceBlockingStub(channel, callOptions);
        }
      };
    return BrokerServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static BrokerServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<BrokerServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<BrokerServiceFutureStub>() {
        @java.lang.Override
        public BrokerServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new BrokerServiceFutureStub(channel, callOptions);
        }
      };
    return BrokerServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Owns sessions: the conversation tree, the queue gate, forks and supersession, the inbox, watching.
   * </pre>
   */
  public static abstract class BrokerServiceImplBase implements io.grpc.BindableService {

    /**
     * <pre>
     * Creates a session. With first messages whose last one is a user message, a run starts at once.
     * Errors: `SESSION_ID_TAKEN`.
     * </pre>
     */
    public void createSession(dev.turngate.v1.CreateSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.CreateSessionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads a session.
     * </pre>
     */
    public void getSession(dev.turngate.v1.GetSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetSessionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the sessions that the caller may see, newest first. Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public void listSessions(dev.turngate.v1.ListSessionsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListSessionsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListSessionsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a session: open runs are cancelled first, its content is gone, a tombstone stays.
     * </pre>
     */
    public void deleteSession(dev.turngate.v1.DeleteSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.DeleteSessionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams a session as a file: newline-delimited JSON, cut into pieces anywhere. The first line is an object
     * with `format` ("turngate.session"), `version` (1), `sessionId`, `tenantId` and `events`, the number of the
     * lines that follow. Each of these is a `SessionEvent` in protobuf's JSON form, without the deltas of text.
     * Messages that were being written are not in it.
     * </pre>
     */
    public void exportSession(dev.turngate.v1.ExportSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ExportSessionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExportSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Makes a session of an exported file, with the same nodes, messages, calls and interactions under the same
     * ids: the same tree and transcript (rule P3; needs the scope `admin`). Parked runs stay parked, and their
     * open questions can be answered. Runs that were under way fail (`RUN_FAILURE_REASON_IMPORTED`); nothing
     * starts by itself. Imported answers and decisions are history: they grant and fulfil nothing. The last event
     * is `session_imported`. Errors: `PERMISSION_DENIED`, `SESSION_ID_TAKEN`; `INVALID_FIELD` for a file that is
     * none or does not fit together, with the line.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.turngate.v1.ImportSessionRequest> importSession(
        io.grpc.stub.StreamObserver<dev.turngate.v1.ImportSessionResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getImportSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Sends a user message, also as an edit of an earlier one. It enters at once, and a run starts, or it is
     * held by the queue gate (rule G1). Errors: `SESSION_BUSY`, `MESSAGE_ID_TAKEN`, `NODE_NOT_FOUND`,
     * `NOT_A_PROMPT`.
     * </pre>
     */
    public void sendMessage(dev.turngate.v1.SendMessageRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.SendMessageResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSendMessageMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists held messages in the order in which they will enter.
     * </pre>
     */
    public void listHeldMessages(dev.turngate.v1.ListHeldMessagesRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListHeldMessagesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListHeldMessagesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Replaces the content of a held message; its place stays. Errors: `HELD_MESSAGE_NOT_FOUND`,
     * `NOT_THE_AUTHOR`.
     * </pre>
     */
    public void updateHeldMessage(dev.turngate.v1.UpdateHeldMessageRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.UpdateHeldMessageResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateHeldMessageMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes a held message; this never sends anything (rule G3). Errors: `HELD_MESSAGE_NOT_FOUND`.
     * </pre>
     */
    public void removeHeldMessage(dev.turngate.v1.RemoveHeldMessageRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RemoveHeldMessageResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRemoveHeldMessageMethod(), responseObserver);
    }

    /**
     * <pre>
     * Ends a pause of the queue (rule G2). If it is not paused, nothing changes and the answer is OK.
     * </pre>
     */
    public void resumeQueue(dev.turngate.v1.ResumeQueueRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ResumeQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getResumeQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams a session's log from a cursor, without gap and without duplicate, then live (rule W1). The
     * stream ends only with an error, or after the event `session_deleted`; a client then resumes from the
     * last frame's cursor. Errors: `CURSOR_INVALID`, `CURSOR_FOREIGN`, `CURSOR_FUTURE`, `WATCH_TOO_SLOW`.
     * </pre>
     */
    public void watchSession(dev.turngate.v1.WatchSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.WatchSessionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchSessionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads a run, found by its own id, a message's or an interaction's (rule F9). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public void getRun(dev.turngate.v1.GetRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetRunResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetRunMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads the conversation tree: its nodes, oldest first, paged.
     * </pre>
     */
    public void getTree(dev.turngate.v1.GetTreeRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetTreeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTreeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads the messages of one branch, oldest first, paged. Calls come with their results. Errors:
     * `NODE_NOT_FOUND`.
     * </pre>
     */
    public void getTranscript(dev.turngate.v1.GetTranscriptRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetTranscriptResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetTranscriptMethod(), responseObserver);
    }

    /**
     * <pre>
     * Selects the branch of a node (rule C3). Errors: `NODE_NOT_FOUND`.
     * </pre>
     */
    public void selectBranch(dev.turngate.v1.SelectBranchRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.SelectBranchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSelectBranchMethod(), responseObserver);
    }

    /**
     * <pre>
     * Answers a client-tool call (rule F1). The first answer to a parked run opens a fork that goes on with
     * it (F2); an answer to another open call of the same step is collected by that fork (F4). Errors:
     * `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`, `CALL_NOT_OPEN`,
     * `WRONG_INTERACTION_KIND`, `TOOL_NAME_MISMATCH`, `INVALID_ANSWER`, `ALREADY_SETTLED`,
     * `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`, `INTERACTION_NOT_HANDLED`, `RUN_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public void settleToolCall(dev.turngate.v1.SettleToolCallRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.SettleToolCallResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSettleToolCallMethod(), responseObserver);
    }

    /**
     * <pre>
     * Approves or denies the start of a server tool (rule A2). Never forks; the run goes on when nothing
     * that it waits for is open. Errors: `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`,
     * `WRONG_INTERACTION_KIND`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public void decideApproval(dev.turngate.v1.DecideApprovalRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.DecideApprovalResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDecideApprovalMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reports that the calling client cannot show a call (rule D1). Errors: `INTERACTION_NOT_FOUND`,
     * `WRONG_INTERACTION_KIND`.
     * </pre>
     */
    public void reportUnhandled(dev.turngate.v1.ReportUnhandledRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ReportUnhandledResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReportUnhandledMethod(), responseObserver);
    }

    /**
     * <pre>
     * Closes one interaction with the result `CANCELLED_BY_USER`; the run goes on in place (rule C4). Errors:
     * `INTERACTION_NOT_FOUND`, `ALREADY_SETTLED`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`,
     * `INTERACTION_NOT_HANDLED`.
     * </pre>
     */
    public void cancelInteraction(dev.turngate.v1.CancelInteractionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.CancelInteractionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCancelInteractionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the grants of a session's selected branch (rule A3).
     * </pre>
     */
    public void listGrants(dev.turngate.v1.ListGrantsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListGrantsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListGrantsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Revokes a grant; calls that were started stay started. Errors: `GRANT_NOT_FOUND`.
     * </pre>
     */
    public void revokeGrant(dev.turngate.v1.RevokeGrantRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RevokeGrantResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRevokeGrantMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads an interaction. Errors: `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public void getInteraction(dev.turngate.v1.GetInteractionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetInteractionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetInteractionMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the open interactions of one session, or of all that the caller may see: the inbox, oldest first
     * (rule I5). Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public void listInteractions(dev.turngate.v1.ListInteractionsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListInteractionsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListInteractionsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams the inbox: the open set, then changes (rule I5). After a break it begins again.
     * </pre>
     */
    public void watchInteractions(dev.turngate.v1.WatchInteractionsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.WatchInteractionsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchInteractionsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stops a run (rule C1). A run that is final answers OK if it was cancelled. Errors: `RUN_NOT_FOUND`,
     * `RUN_STATE`.
     * </pre>
     */
    public void cancelRun(dev.turngate.v1.CancelRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.CancelRunResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCancelRunMethod(), responseObserver);
    }

    /**
     * <pre>
     * Opens a new run beside one, under the same prompt, and selects it (rule C2). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public void regenerateRun(dev.turngate.v1.RegenerateRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RegenerateRunResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRegenerateRunMethod(), responseObserver);
    }

    /**
     * <pre>
     * Opens a run beside a failed one with all that it had (rule R6). Errors: `RUN_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public void retryRun(dev.turngate.v1.RetryRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RetryRunResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRetryRunMethod(), responseObserver);
    }

    /**
     * <pre>
     * Tells version, limits and what is built in.
     * </pre>
     */
    public void getServerInfo(dev.turngate.v1.GetServerInfoRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetServerInfoResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetServerInfoMethod(), responseObserver);
    }

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
          .addMethod(
            getCreateSessionMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.CreateSessionRequest,
                dev.turngate.v1.CreateSessionResponse>(
                  this, METHODID_CREATE_SESSION)))
          .addMethod(
            getGetSessionMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.GetSessionRequest,
                dev.turngate.v1.GetSessionResponse>(
                  this, METHODID_GET_SESSION)))
          .addMethod(
            getListSessionsMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ListSessionsRequest,
                dev.turngate.v1.ListSessionsResponse>(
                  this, METHODID_LIST_SESSIONS)))
          .addMethod(
            getDeleteSessionMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.DeleteSessionRequest,
                dev.turngate.v1.DeleteSessionResponse>(
                  this, METHODID_DELETE_SESSION)))
          .addMethod(
            getExportSessionMethod(),
            io.grpc.stub.ServerCalls.asyncServerStreamingCall(
              new MethodHandlers<
                dev.turngate.v1.ExportSessionRequest,
                dev.turngate.v1.ExportSessionResponse>(
                  this, METHODID_EXPORT_SESSION)))
          .addMethod(
            getImportSessionMethod(),
            io.grpc.stub.ServerCalls.asyncClientStreamingCall(
              new MethodHandlers<
                dev.turngate.v1.ImportSessionRequest,
                dev.turngate.v1.ImportSessionResponse>(
                  this, METHODID_IMPORT_SESSION)))
          .addMethod(
            getSendMessageMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.SendMessageRequest,
                dev.turngate.v1.SendMessageResponse>(
                  this, METHODID_SEND_MESSAGE)))
          .addMethod(
            getListHeldMessagesMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ListHeldMessagesRequest,
                dev.turngate.v1.ListHeldMessagesResponse>(
                  this, METHODID_LIST_HELD_MESSAGES)))
          .addMethod(
            getUpdateHeldMessageMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.UpdateHeldMessageRequest,
                dev.turngate.v1.UpdateHeldMessageResponse>(
                  this, METHODID_UPDATE_HELD_MESSAGE)))
          .addMethod(
            getRemoveHeldMessageMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.RemoveHeldMessageRequest,
                dev.turngate.v1.RemoveHeldMessageResponse>(
                  this, METHODID_REMOVE_HELD_MESSAGE)))
          .addMethod(
            getResumeQueueMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ResumeQueueRequest,
                dev.turngate.v1.ResumeQueueResponse>(
                  this, METHODID_RESUME_QUEUE)))
          .addMethod(
            getWatchSessionMethod(),
            io.grpc.stub.ServerCalls.asyncServerStreamingCall(
              new MethodHandlers<
                dev.turngate.v1.WatchSessionRequest,
                dev.turngate.v1.WatchSessionResponse>(
                  this, METHODID_WATCH_SESSION)))
          .addMethod(
            getGetRunMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.GetRunRequest,
                dev.turngate.v1.GetRunResponse>(
                  this, METHODID_GET_RUN)))
          .addMethod(
            getGetTreeMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.GetTreeRequest,
                dev.turngate.v1.GetTreeResponse>(
                  this, METHODID_GET_TREE)))
          .addMethod(
            getGetTranscriptMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.GetTranscriptRequest,
                dev.turngate.v1.GetTranscriptResponse>(
                  this, METHODID_GET_TRANSCRIPT)))
          .addMethod(
            getSelectBranchMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.SelectBranchRequest,
                dev.turngate.v1.SelectBranchResponse>(
                  this, METHODID_SELECT_BRANCH)))
          .addMethod(
            getSettleToolCallMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.SettleToolCallRequest,
                dev.turngate.v1.SettleToolCallResponse>(
                  this, METHODID_SETTLE_TOOL_CALL)))
          .addMethod(
            getDecideApprovalMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.DecideApprovalRequest,
                dev.turngate.v1.DecideApprovalResponse>(
                  this, METHODID_DECIDE_APPROVAL)))
          .addMethod(
            getReportUnhandledMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ReportUnhandledRequest,
                dev.turngate.v1.ReportUnhandledResponse>(
                  this, METHODID_REPORT_UNHANDLED)))
          .addMethod(
            getCancelInteractionMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.CancelInteractionRequest,
                dev.turngate.v1.CancelInteractionResponse>(
                  this, METHODID_CANCEL_INTERACTION)))
          .addMethod(
            getListGrantsMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ListGrantsRequest,
                dev.turngate.v1.ListGrantsResponse>(
                  this, METHODID_LIST_GRANTS)))
          .addMethod(
            getRevokeGrantMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.RevokeGrantRequest,
                dev.turngate.v1.RevokeGrantResponse>(
                  this, METHODID_REVOKE_GRANT)))
          .addMethod(
            getGetInteractionMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.GetInteractionRequest,
                dev.turngate.v1.GetInteractionResponse>(
                  this, METHODID_GET_INTERACTION)))
          .addMethod(
            getListInteractionsMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ListInteractionsRequest,
                dev.turngate.v1.ListInteractionsResponse>(
                  this, METHODID_LIST_INTERACTIONS)))
          .addMethod(
            getWatchInteractionsMethod(),
            io.grpc.stub.ServerCalls.asyncServerStreamingCall(
              new MethodHandlers<
                dev.turngate.v1.WatchInteractionsRequest,
                dev.turngate.v1.WatchInteractionsResponse>(
                  this, METHODID_WATCH_INTERACTIONS)))
          .addMethod(
            getCancelRunMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.CancelRunRequest,
                dev.turngate.v1.CancelRunResponse>(
                  this, METHODID_CANCEL_RUN)))
          .addMethod(
            getRegenerateRunMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.RegenerateRunRequest,
                dev.turngate.v1.RegenerateRunResponse>(
                  this, METHODID_REGENERATE_RUN)))
          .addMethod(
            getRetryRunMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.RetryRunRequest,
                dev.turngate.v1.RetryRunResponse>(
                  this, METHODID_RETRY_RUN)))
          .addMethod(
            getGetServerInfoMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.GetServerInfoRequest,
                dev.turngate.v1.GetServerInfoResponse>(
                  this, METHODID_GET_SERVER_INFO)))
          .build();
    }
  }

  /**
   * <pre>
   * Owns sessions: the conversation tree, the queue gate, forks and supersession, the inbox, watching.
   * </pre>
   */
  public static final class BrokerServiceStub extends io.grpc.stub.AbstractAsyncStub<BrokerServiceStub> {
    private BrokerServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected BrokerServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new BrokerServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a session. With first messages whose last one is a user message, a run starts at once.
     * Errors: `SESSION_ID_TAKEN`.
     * </pre>
     */
    public void createSession(dev.turngate.v1.CreateSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.CreateSessionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateSessionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads a session.
     * </pre>
     */
    public void getSession(dev.turngate.v1.GetSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetSessionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetSessionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the sessions that the caller may see, newest first. Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public void listSessions(dev.turngate.v1.ListSessionsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListSessionsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListSessionsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a session: open runs are cancelled first, its content is gone, a tombstone stays.
     * </pre>
     */
    public void deleteSession(dev.turngate.v1.DeleteSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.DeleteSessionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteSessionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams a session as a file: newline-delimited JSON, cut into pieces anywhere. The first line is an object
     * with `format` ("turngate.session"), `version` (1), `sessionId`, `tenantId` and `events`, the number of the
     * lines that follow. Each of these is a `SessionEvent` in protobuf's JSON form, without the deltas of text.
     * Messages that were being written are not in it.
     * </pre>
     */
    public void exportSession(dev.turngate.v1.ExportSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ExportSessionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getExportSessionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Makes a session of an exported file, with the same nodes, messages, calls and interactions under the same
     * ids: the same tree and transcript (rule P3; needs the scope `admin`). Parked runs stay parked, and their
     * open questions can be answered. Runs that were under way fail (`RUN_FAILURE_REASON_IMPORTED`); nothing
     * starts by itself. Imported answers and decisions are history: they grant and fulfil nothing. The last event
     * is `session_imported`. Errors: `PERMISSION_DENIED`, `SESSION_ID_TAKEN`; `INVALID_FIELD` for a file that is
     * none or does not fit together, with the line.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.turngate.v1.ImportSessionRequest> importSession(
        io.grpc.stub.StreamObserver<dev.turngate.v1.ImportSessionResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncClientStreamingCall(
          getChannel().newCall(getImportSessionMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Sends a user message, also as an edit of an earlier one. It enters at once, and a run starts, or it is
     * held by the queue gate (rule G1). Errors: `SESSION_BUSY`, `MESSAGE_ID_TAKEN`, `NODE_NOT_FOUND`,
     * `NOT_A_PROMPT`.
     * </pre>
     */
    public void sendMessage(dev.turngate.v1.SendMessageRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.SendMessageResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSendMessageMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists held messages in the order in which they will enter.
     * </pre>
     */
    public void listHeldMessages(dev.turngate.v1.ListHeldMessagesRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListHeldMessagesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListHeldMessagesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Replaces the content of a held message; its place stays. Errors: `HELD_MESSAGE_NOT_FOUND`,
     * `NOT_THE_AUTHOR`.
     * </pre>
     */
    public void updateHeldMessage(dev.turngate.v1.UpdateHeldMessageRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.UpdateHeldMessageResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateHeldMessageMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Removes a held message; this never sends anything (rule G3). Errors: `HELD_MESSAGE_NOT_FOUND`.
     * </pre>
     */
    public void removeHeldMessage(dev.turngate.v1.RemoveHeldMessageRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RemoveHeldMessageResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRemoveHeldMessageMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Ends a pause of the queue (rule G2). If it is not paused, nothing changes and the answer is OK.
     * </pre>
     */
    public void resumeQueue(dev.turngate.v1.ResumeQueueRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ResumeQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getResumeQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams a session's log from a cursor, without gap and without duplicate, then live (rule W1). The
     * stream ends only with an error, or after the event `session_deleted`; a client then resumes from the
     * last frame's cursor. Errors: `CURSOR_INVALID`, `CURSOR_FOREIGN`, `CURSOR_FUTURE`, `WATCH_TOO_SLOW`.
     * </pre>
     */
    public void watchSession(dev.turngate.v1.WatchSessionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.WatchSessionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchSessionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads a run, found by its own id, a message's or an interaction's (rule F9). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public void getRun(dev.turngate.v1.GetRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetRunResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetRunMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads the conversation tree: its nodes, oldest first, paged.
     * </pre>
     */
    public void getTree(dev.turngate.v1.GetTreeRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetTreeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTreeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads the messages of one branch, oldest first, paged. Calls come with their results. Errors:
     * `NODE_NOT_FOUND`.
     * </pre>
     */
    public void getTranscript(dev.turngate.v1.GetTranscriptRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetTranscriptResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetTranscriptMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Selects the branch of a node (rule C3). Errors: `NODE_NOT_FOUND`.
     * </pre>
     */
    public void selectBranch(dev.turngate.v1.SelectBranchRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.SelectBranchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSelectBranchMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Answers a client-tool call (rule F1). The first answer to a parked run opens a fork that goes on with
     * it (F2); an answer to another open call of the same step is collected by that fork (F4). Errors:
     * `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`, `CALL_NOT_OPEN`,
     * `WRONG_INTERACTION_KIND`, `TOOL_NAME_MISMATCH`, `INVALID_ANSWER`, `ALREADY_SETTLED`,
     * `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`, `INTERACTION_NOT_HANDLED`, `RUN_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public void settleToolCall(dev.turngate.v1.SettleToolCallRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.SettleToolCallResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSettleToolCallMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Approves or denies the start of a server tool (rule A2). Never forks; the run goes on when nothing
     * that it waits for is open. Errors: `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`,
     * `WRONG_INTERACTION_KIND`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public void decideApproval(dev.turngate.v1.DecideApprovalRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.DecideApprovalResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDecideApprovalMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reports that the calling client cannot show a call (rule D1). Errors: `INTERACTION_NOT_FOUND`,
     * `WRONG_INTERACTION_KIND`.
     * </pre>
     */
    public void reportUnhandled(dev.turngate.v1.ReportUnhandledRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ReportUnhandledResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getReportUnhandledMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Closes one interaction with the result `CANCELLED_BY_USER`; the run goes on in place (rule C4). Errors:
     * `INTERACTION_NOT_FOUND`, `ALREADY_SETTLED`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`,
     * `INTERACTION_NOT_HANDLED`.
     * </pre>
     */
    public void cancelInteraction(dev.turngate.v1.CancelInteractionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.CancelInteractionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCancelInteractionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the grants of a session's selected branch (rule A3).
     * </pre>
     */
    public void listGrants(dev.turngate.v1.ListGrantsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListGrantsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListGrantsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Revokes a grant; calls that were started stay started. Errors: `GRANT_NOT_FOUND`.
     * </pre>
     */
    public void revokeGrant(dev.turngate.v1.RevokeGrantRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RevokeGrantResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRevokeGrantMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads an interaction. Errors: `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public void getInteraction(dev.turngate.v1.GetInteractionRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetInteractionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetInteractionMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the open interactions of one session, or of all that the caller may see: the inbox, oldest first
     * (rule I5). Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public void listInteractions(dev.turngate.v1.ListInteractionsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ListInteractionsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListInteractionsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams the inbox: the open set, then changes (rule I5). After a break it begins again.
     * </pre>
     */
    public void watchInteractions(dev.turngate.v1.WatchInteractionsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.WatchInteractionsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchInteractionsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stops a run (rule C1). A run that is final answers OK if it was cancelled. Errors: `RUN_NOT_FOUND`,
     * `RUN_STATE`.
     * </pre>
     */
    public void cancelRun(dev.turngate.v1.CancelRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.CancelRunResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCancelRunMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Opens a new run beside one, under the same prompt, and selects it (rule C2). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public void regenerateRun(dev.turngate.v1.RegenerateRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RegenerateRunResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRegenerateRunMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Opens a run beside a failed one with all that it had (rule R6). Errors: `RUN_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public void retryRun(dev.turngate.v1.RetryRunRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.RetryRunResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRetryRunMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Tells version, limits and what is built in.
     * </pre>
     */
    public void getServerInfo(dev.turngate.v1.GetServerInfoRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.GetServerInfoResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetServerInfoMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * <pre>
   * Owns sessions: the conversation tree, the queue gate, forks and supersession, the inbox, watching.
   * </pre>
   */
  public static final class BrokerServiceBlockingStub extends io.grpc.stub.AbstractBlockingStub<BrokerServiceBlockingStub> {
    private BrokerServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected BrokerServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new BrokerServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a session. With first messages whose last one is a user message, a run starts at once.
     * Errors: `SESSION_ID_TAKEN`.
     * </pre>
     */
    public dev.turngate.v1.CreateSessionResponse createSession(dev.turngate.v1.CreateSessionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateSessionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads a session.
     * </pre>
     */
    public dev.turngate.v1.GetSessionResponse getSession(dev.turngate.v1.GetSessionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetSessionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the sessions that the caller may see, newest first. Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public dev.turngate.v1.ListSessionsResponse listSessions(dev.turngate.v1.ListSessionsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListSessionsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a session: open runs are cancelled first, its content is gone, a tombstone stays.
     * </pre>
     */
    public dev.turngate.v1.DeleteSessionResponse deleteSession(dev.turngate.v1.DeleteSessionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteSessionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams a session as a file: newline-delimited JSON, cut into pieces anywhere. The first line is an object
     * with `format` ("turngate.session"), `version` (1), `sessionId`, `tenantId` and `events`, the number of the
     * lines that follow. Each of these is a `SessionEvent` in protobuf's JSON form, without the deltas of text.
     * Messages that were being written are not in it.
     * </pre>
     */
    public java.util.Iterator<dev.turngate.v1.ExportSessionResponse> exportSession(
        dev.turngate.v1.ExportSessionRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getExportSessionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Sends a user message, also as an edit of an earlier one. It enters at once, and a run starts, or it is
     * held by the queue gate (rule G1). Errors: `SESSION_BUSY`, `MESSAGE_ID_TAKEN`, `NODE_NOT_FOUND`,
     * `NOT_A_PROMPT`.
     * </pre>
     */
    public dev.turngate.v1.SendMessageResponse sendMessage(dev.turngate.v1.SendMessageRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSendMessageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists held messages in the order in which they will enter.
     * </pre>
     */
    public dev.turngate.v1.ListHeldMessagesResponse listHeldMessages(dev.turngate.v1.ListHeldMessagesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListHeldMessagesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Replaces the content of a held message; its place stays. Errors: `HELD_MESSAGE_NOT_FOUND`,
     * `NOT_THE_AUTHOR`.
     * </pre>
     */
    public dev.turngate.v1.UpdateHeldMessageResponse updateHeldMessage(dev.turngate.v1.UpdateHeldMessageRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateHeldMessageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes a held message; this never sends anything (rule G3). Errors: `HELD_MESSAGE_NOT_FOUND`.
     * </pre>
     */
    public dev.turngate.v1.RemoveHeldMessageResponse removeHeldMessage(dev.turngate.v1.RemoveHeldMessageRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRemoveHeldMessageMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Ends a pause of the queue (rule G2). If it is not paused, nothing changes and the answer is OK.
     * </pre>
     */
    public dev.turngate.v1.ResumeQueueResponse resumeQueue(dev.turngate.v1.ResumeQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getResumeQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams a session's log from a cursor, without gap and without duplicate, then live (rule W1). The
     * stream ends only with an error, or after the event `session_deleted`; a client then resumes from the
     * last frame's cursor. Errors: `CURSOR_INVALID`, `CURSOR_FOREIGN`, `CURSOR_FUTURE`, `WATCH_TOO_SLOW`.
     * </pre>
     */
    public java.util.Iterator<dev.turngate.v1.WatchSessionResponse> watchSession(
        dev.turngate.v1.WatchSessionRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchSessionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads a run, found by its own id, a message's or an interaction's (rule F9). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public dev.turngate.v1.GetRunResponse getRun(dev.turngate.v1.GetRunRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetRunMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the conversation tree: its nodes, oldest first, paged.
     * </pre>
     */
    public dev.turngate.v1.GetTreeResponse getTree(dev.turngate.v1.GetTreeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTreeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the messages of one branch, oldest first, paged. Calls come with their results. Errors:
     * `NODE_NOT_FOUND`.
     * </pre>
     */
    public dev.turngate.v1.GetTranscriptResponse getTranscript(dev.turngate.v1.GetTranscriptRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetTranscriptMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Selects the branch of a node (rule C3). Errors: `NODE_NOT_FOUND`.
     * </pre>
     */
    public dev.turngate.v1.SelectBranchResponse selectBranch(dev.turngate.v1.SelectBranchRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSelectBranchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Answers a client-tool call (rule F1). The first answer to a parked run opens a fork that goes on with
     * it (F2); an answer to another open call of the same step is collected by that fork (F4). Errors:
     * `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`, `CALL_NOT_OPEN`,
     * `WRONG_INTERACTION_KIND`, `TOOL_NAME_MISMATCH`, `INVALID_ANSWER`, `ALREADY_SETTLED`,
     * `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`, `INTERACTION_NOT_HANDLED`, `RUN_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public dev.turngate.v1.SettleToolCallResponse settleToolCall(dev.turngate.v1.SettleToolCallRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSettleToolCallMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Approves or denies the start of a server tool (rule A2). Never forks; the run goes on when nothing
     * that it waits for is open. Errors: `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`,
     * `WRONG_INTERACTION_KIND`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public dev.turngate.v1.DecideApprovalResponse decideApproval(dev.turngate.v1.DecideApprovalRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDecideApprovalMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reports that the calling client cannot show a call (rule D1). Errors: `INTERACTION_NOT_FOUND`,
     * `WRONG_INTERACTION_KIND`.
     * </pre>
     */
    public dev.turngate.v1.ReportUnhandledResponse reportUnhandled(dev.turngate.v1.ReportUnhandledRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getReportUnhandledMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Closes one interaction with the result `CANCELLED_BY_USER`; the run goes on in place (rule C4). Errors:
     * `INTERACTION_NOT_FOUND`, `ALREADY_SETTLED`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`,
     * `INTERACTION_NOT_HANDLED`.
     * </pre>
     */
    public dev.turngate.v1.CancelInteractionResponse cancelInteraction(dev.turngate.v1.CancelInteractionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCancelInteractionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the grants of a session's selected branch (rule A3).
     * </pre>
     */
    public dev.turngate.v1.ListGrantsResponse listGrants(dev.turngate.v1.ListGrantsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListGrantsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Revokes a grant; calls that were started stay started. Errors: `GRANT_NOT_FOUND`.
     * </pre>
     */
    public dev.turngate.v1.RevokeGrantResponse revokeGrant(dev.turngate.v1.RevokeGrantRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRevokeGrantMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads an interaction. Errors: `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public dev.turngate.v1.GetInteractionResponse getInteraction(dev.turngate.v1.GetInteractionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetInteractionMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the open interactions of one session, or of all that the caller may see: the inbox, oldest first
     * (rule I5). Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public dev.turngate.v1.ListInteractionsResponse listInteractions(dev.turngate.v1.ListInteractionsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListInteractionsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams the inbox: the open set, then changes (rule I5). After a break it begins again.
     * </pre>
     */
    public java.util.Iterator<dev.turngate.v1.WatchInteractionsResponse> watchInteractions(
        dev.turngate.v1.WatchInteractionsRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchInteractionsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stops a run (rule C1). A run that is final answers OK if it was cancelled. Errors: `RUN_NOT_FOUND`,
     * `RUN_STATE`.
     * </pre>
     */
    public dev.turngate.v1.CancelRunResponse cancelRun(dev.turngate.v1.CancelRunRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCancelRunMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Opens a new run beside one, under the same prompt, and selects it (rule C2). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public dev.turngate.v1.RegenerateRunResponse regenerateRun(dev.turngate.v1.RegenerateRunRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRegenerateRunMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Opens a run beside a failed one with all that it had (rule R6). Errors: `RUN_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public dev.turngate.v1.RetryRunResponse retryRun(dev.turngate.v1.RetryRunRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRetryRunMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Tells version, limits and what is built in.
     * </pre>
     */
    public dev.turngate.v1.GetServerInfoResponse getServerInfo(dev.turngate.v1.GetServerInfoRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetServerInfoMethod(), getCallOptions(), request);
    }
  }

  /**
   * <pre>
   * Owns sessions: the conversation tree, the queue gate, forks and supersession, the inbox, watching.
   * </pre>
   */
  public static final class BrokerServiceFutureStub extends io.grpc.stub.AbstractFutureStub<BrokerServiceFutureStub> {
    private BrokerServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected BrokerServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new BrokerServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a session. With first messages whose last one is a user message, a run starts at once.
     * Errors: `SESSION_ID_TAKEN`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.CreateSessionResponse> createSession(
        dev.turngate.v1.CreateSessionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateSessionMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads a session.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.GetSessionResponse> getSession(
        dev.turngate.v1.GetSessionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetSessionMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the sessions that the caller may see, newest first. Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ListSessionsResponse> listSessions(
        dev.turngate.v1.ListSessionsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListSessionsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a session: open runs are cancelled first, its content is gone, a tombstone stays.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.DeleteSessionResponse> deleteSession(
        dev.turngate.v1.DeleteSessionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteSessionMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Sends a user message, also as an edit of an earlier one. It enters at once, and a run starts, or it is
     * held by the queue gate (rule G1). Errors: `SESSION_BUSY`, `MESSAGE_ID_TAKEN`, `NODE_NOT_FOUND`,
     * `NOT_A_PROMPT`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.SendMessageResponse> sendMessage(
        dev.turngate.v1.SendMessageRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSendMessageMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists held messages in the order in which they will enter.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ListHeldMessagesResponse> listHeldMessages(
        dev.turngate.v1.ListHeldMessagesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListHeldMessagesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Replaces the content of a held message; its place stays. Errors: `HELD_MESSAGE_NOT_FOUND`,
     * `NOT_THE_AUTHOR`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.UpdateHeldMessageResponse> updateHeldMessage(
        dev.turngate.v1.UpdateHeldMessageRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateHeldMessageMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes a held message; this never sends anything (rule G3). Errors: `HELD_MESSAGE_NOT_FOUND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.RemoveHeldMessageResponse> removeHeldMessage(
        dev.turngate.v1.RemoveHeldMessageRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRemoveHeldMessageMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Ends a pause of the queue (rule G2). If it is not paused, nothing changes and the answer is OK.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ResumeQueueResponse> resumeQueue(
        dev.turngate.v1.ResumeQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getResumeQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads a run, found by its own id, a message's or an interaction's (rule F9). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.GetRunResponse> getRun(
        dev.turngate.v1.GetRunRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetRunMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads the conversation tree: its nodes, oldest first, paged.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.GetTreeResponse> getTree(
        dev.turngate.v1.GetTreeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTreeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads the messages of one branch, oldest first, paged. Calls come with their results. Errors:
     * `NODE_NOT_FOUND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.GetTranscriptResponse> getTranscript(
        dev.turngate.v1.GetTranscriptRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetTranscriptMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Selects the branch of a node (rule C3). Errors: `NODE_NOT_FOUND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.SelectBranchResponse> selectBranch(
        dev.turngate.v1.SelectBranchRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSelectBranchMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Answers a client-tool call (rule F1). The first answer to a parked run opens a fork that goes on with
     * it (F2); an answer to another open call of the same step is collected by that fork (F4). Errors:
     * `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`, `CALL_NOT_OPEN`,
     * `WRONG_INTERACTION_KIND`, `TOOL_NAME_MISMATCH`, `INVALID_ANSWER`, `ALREADY_SETTLED`,
     * `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`, `INTERACTION_NOT_HANDLED`, `RUN_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.SettleToolCallResponse> settleToolCall(
        dev.turngate.v1.SettleToolCallRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSettleToolCallMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Approves or denies the start of a server tool (rule A2). Never forks; the run goes on when nothing
     * that it waits for is open. Errors: `INTERACTION_NOT_FOUND`, `RUN_NOT_FOUND`, `TOOL_CALL_NOT_IN_RUN`,
     * `WRONG_INTERACTION_KIND`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`, `INTERACTION_CANCELLED`,
     * `NOT_THE_CLOSER`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.DecideApprovalResponse> decideApproval(
        dev.turngate.v1.DecideApprovalRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDecideApprovalMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reports that the calling client cannot show a call (rule D1). Errors: `INTERACTION_NOT_FOUND`,
     * `WRONG_INTERACTION_KIND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ReportUnhandledResponse> reportUnhandled(
        dev.turngate.v1.ReportUnhandledRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getReportUnhandledMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Closes one interaction with the result `CANCELLED_BY_USER`; the run goes on in place (rule C4). Errors:
     * `INTERACTION_NOT_FOUND`, `ALREADY_SETTLED`, `ALREADY_DECIDED`, `INTERACTION_EXPIRED`,
     * `INTERACTION_NOT_HANDLED`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.CancelInteractionResponse> cancelInteraction(
        dev.turngate.v1.CancelInteractionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCancelInteractionMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the grants of a session's selected branch (rule A3).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ListGrantsResponse> listGrants(
        dev.turngate.v1.ListGrantsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListGrantsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Revokes a grant; calls that were started stay started. Errors: `GRANT_NOT_FOUND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.RevokeGrantResponse> revokeGrant(
        dev.turngate.v1.RevokeGrantRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRevokeGrantMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads an interaction. Errors: `INTERACTION_NOT_FOUND`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.GetInteractionResponse> getInteraction(
        dev.turngate.v1.GetInteractionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetInteractionMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the open interactions of one session, or of all that the caller may see: the inbox, oldest first
     * (rule I5). Errors: `PAGE_TOKEN_INVALID`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ListInteractionsResponse> listInteractions(
        dev.turngate.v1.ListInteractionsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListInteractionsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stops a run (rule C1). A run that is final answers OK if it was cancelled. Errors: `RUN_NOT_FOUND`,
     * `RUN_STATE`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.CancelRunResponse> cancelRun(
        dev.turngate.v1.CancelRunRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCancelRunMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Opens a new run beside one, under the same prompt, and selects it (rule C2). Errors: `RUN_NOT_FOUND`,
     * `MESSAGE_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.RegenerateRunResponse> regenerateRun(
        dev.turngate.v1.RegenerateRunRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRegenerateRunMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Opens a run beside a failed one with all that it had (rule R6). Errors: `RUN_NOT_FOUND`, `RUN_STATE`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.RetryRunResponse> retryRun(
        dev.turngate.v1.RetryRunRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRetryRunMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Tells version, limits and what is built in.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.GetServerInfoResponse> getServerInfo(
        dev.turngate.v1.GetServerInfoRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetServerInfoMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_SESSION = 0;
  private static final int METHODID_GET_SESSION = 1;
  private static final int METHODID_LIST_SESSIONS = 2;
  private static final int METHODID_DELETE_SESSION = 3;
  private static final int METHODID_EXPORT_SESSION = 4;
  private static final int METHODID_SEND_MESSAGE = 5;
  private static final int METHODID_LIST_HELD_MESSAGES = 6;
  private static final int METHODID_UPDATE_HELD_MESSAGE = 7;
  private static final int METHODID_REMOVE_HELD_MESSAGE = 8;
  private static final int METHODID_RESUME_QUEUE = 9;
  private static final int METHODID_WATCH_SESSION = 10;
  private static final int METHODID_GET_RUN = 11;
  private static final int METHODID_GET_TREE = 12;
  private static final int METHODID_GET_TRANSCRIPT = 13;
  private static final int METHODID_SELECT_BRANCH = 14;
  private static final int METHODID_SETTLE_TOOL_CALL = 15;
  private static final int METHODID_DECIDE_APPROVAL = 16;
  private static final int METHODID_REPORT_UNHANDLED = 17;
  private static final int METHODID_CANCEL_INTERACTION = 18;
  private static final int METHODID_LIST_GRANTS = 19;
  private static final int METHODID_REVOKE_GRANT = 20;
  private static final int METHODID_GET_INTERACTION = 21;
  private static final int METHODID_LIST_INTERACTIONS = 22;
  private static final int METHODID_WATCH_INTERACTIONS = 23;
  private static final int METHODID_CANCEL_RUN = 24;
  private static final int METHODID_REGENERATE_RUN = 25;
  private static final int METHODID_RETRY_RUN = 26;
  private static final int METHODID_GET_SERVER_INFO = 27;
  private static final int METHODID_IMPORT_SESSION = 28;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final BrokerServiceImplBase serviceImpl;
    private final int methodId;

    MethodHandlers(BrokerServiceImplBase serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_CREATE_SESSION:
          serviceImpl.createSession((dev.turngate.v1.CreateSessionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.CreateSessionResponse>) responseObserver);
          break;
        case METHODID_GET_SESSION:
          serviceImpl.getSession((dev.turngate.v1.GetSessionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.GetSessionResponse>) responseObserver);
          break;
        case METHODID_LIST_SESSIONS:
          serviceImpl.listSessions((dev.turngate.v1.ListSessionsRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ListSessionsResponse>) responseObserver);
          break;
        case METHODID_DELETE_SESSION:
          serviceImpl.deleteSession((dev.turngate.v1.DeleteSessionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.DeleteSessionResponse>) responseObserver);
          break;
        case METHODID_EXPORT_SESSION:
          serviceImpl.exportSession((dev.turngate.v1.ExportSessionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ExportSessionResponse>) responseObserver);
          break;
        case METHODID_SEND_MESSAGE:
          serviceImpl.sendMessage((dev.turngate.v1.SendMessageRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.SendMessageResponse>) responseObserver);
          break;
        case METHODID_LIST_HELD_MESSAGES:
          serviceImpl.listHeldMessages((dev.turngate.v1.ListHeldMessagesRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ListHeldMessagesResponse>) responseObserver);
          break;
        case METHODID_UPDATE_HELD_MESSAGE:
          serviceImpl.updateHeldMessage((dev.turngate.v1.UpdateHeldMessageRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.UpdateHeldMessageResponse>) responseObserver);
          break;
        case METHODID_REMOVE_HELD_MESSAGE:
          serviceImpl.removeHeldMessage((dev.turngate.v1.RemoveHeldMessageRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.RemoveHeldMessageResponse>) responseObserver);
          break;
        case METHODID_RESUME_QUEUE:
          serviceImpl.resumeQueue((dev.turngate.v1.ResumeQueueRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ResumeQueueResponse>) responseObserver);
          break;
        case METHODID_WATCH_SESSION:
          serviceImpl.watchSession((dev.turngate.v1.WatchSessionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.WatchSessionResponse>) responseObserver);
          break;
        case METHODID_GET_RUN:
          serviceImpl.getRun((dev.turngate.v1.GetRunRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.GetRunResponse>) responseObserver);
          break;
        case METHODID_GET_TREE:
          serviceImpl.getTree((dev.turngate.v1.GetTreeRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.GetTreeResponse>) responseObserver);
          break;
        case METHODID_GET_TRANSCRIPT:
          serviceImpl.getTranscript((dev.turngate.v1.GetTranscriptRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.GetTranscriptResponse>) responseObserver);
          break;
        case METHODID_SELECT_BRANCH:
          serviceImpl.selectBranch((dev.turngate.v1.SelectBranchRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.SelectBranchResponse>) responseObserver);
          break;
        case METHODID_SETTLE_TOOL_CALL:
          serviceImpl.settleToolCall((dev.turngate.v1.SettleToolCallRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.SettleToolCallResponse>) responseObserver);
          break;
        case METHODID_DECIDE_APPROVAL:
          serviceImpl.decideApproval((dev.turngate.v1.DecideApprovalRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.DecideApprovalResponse>) responseObserver);
          break;
        case METHODID_REPORT_UNHANDLED:
          serviceImpl.reportUnhandled((dev.turngate.v1.ReportUnhandledRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ReportUnhandledResponse>) responseObserver);
          break;
        case METHODID_CANCEL_INTERACTION:
          serviceImpl.cancelInteraction((dev.turngate.v1.CancelInteractionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.CancelInteractionResponse>) responseObserver);
          break;
        case METHODID_LIST_GRANTS:
          serviceImpl.listGrants((dev.turngate.v1.ListGrantsRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ListGrantsResponse>) responseObserver);
          break;
        case METHODID_REVOKE_GRANT:
          serviceImpl.revokeGrant((dev.turngate.v1.RevokeGrantRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.RevokeGrantResponse>) responseObserver);
          break;
        case METHODID_GET_INTERACTION:
          serviceImpl.getInteraction((dev.turngate.v1.GetInteractionRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.GetInteractionResponse>) responseObserver);
          break;
        case METHODID_LIST_INTERACTIONS:
          serviceImpl.listInteractions((dev.turngate.v1.ListInteractionsRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ListInteractionsResponse>) responseObserver);
          break;
        case METHODID_WATCH_INTERACTIONS:
          serviceImpl.watchInteractions((dev.turngate.v1.WatchInteractionsRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.WatchInteractionsResponse>) responseObserver);
          break;
        case METHODID_CANCEL_RUN:
          serviceImpl.cancelRun((dev.turngate.v1.CancelRunRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.CancelRunResponse>) responseObserver);
          break;
        case METHODID_REGENERATE_RUN:
          serviceImpl.regenerateRun((dev.turngate.v1.RegenerateRunRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.RegenerateRunResponse>) responseObserver);
          break;
        case METHODID_RETRY_RUN:
          serviceImpl.retryRun((dev.turngate.v1.RetryRunRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.RetryRunResponse>) responseObserver);
          break;
        case METHODID_GET_SERVER_INFO:
          serviceImpl.getServerInfo((dev.turngate.v1.GetServerInfoRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.GetServerInfoResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_IMPORT_SESSION:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.importSession(
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ImportSessionResponse>) responseObserver);
        default:
          throw new AssertionError();
      }
    }
  }

  private static abstract class BrokerServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    BrokerServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.turngate.v1.Broker.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("BrokerService");
    }
  }

  private static final class BrokerServiceFileDescriptorSupplier
      extends BrokerServiceBaseDescriptorSupplier {
    BrokerServiceFileDescriptorSupplier() {}
  }

  private static final class BrokerServiceMethodDescriptorSupplier
      extends BrokerServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final String methodName;

    BrokerServiceMethodDescriptorSupplier(String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (BrokerServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new BrokerServiceFileDescriptorSupplier())
              .addMethod(getCreateSessionMethod())
              .addMethod(getGetSessionMethod())
              .addMethod(getListSessionsMethod())
              .addMethod(getDeleteSessionMethod())
              .addMethod(getExportSessionMethod())
              .addMethod(getImportSessionMethod())
              .addMethod(getSendMessageMethod())
              .addMethod(getListHeldMessagesMethod())
              .addMethod(getUpdateHeldMessageMethod())
              .addMethod(getRemoveHeldMessageMethod())
              .addMethod(getResumeQueueMethod())
              .addMethod(getWatchSessionMethod())
              .addMethod(getGetRunMethod())
              .addMethod(getGetTreeMethod())
              .addMethod(getGetTranscriptMethod())
              .addMethod(getSelectBranchMethod())
              .addMethod(getSettleToolCallMethod())
              .addMethod(getDecideApprovalMethod())
              .addMethod(getReportUnhandledMethod())
              .addMethod(getCancelInteractionMethod())
              .addMethod(getListGrantsMethod())
              .addMethod(getRevokeGrantMethod())
              .addMethod(getGetInteractionMethod())
              .addMethod(getListInteractionsMethod())
              .addMethod(getWatchInteractionsMethod())
              .addMethod(getCancelRunMethod())
              .addMethod(getRegenerateRunMethod())
              .addMethod(getRetryRunMethod())
              .addMethod(getGetServerInfoMethod())
              .build();
        }
      }
    }
    return result;
  }
}
