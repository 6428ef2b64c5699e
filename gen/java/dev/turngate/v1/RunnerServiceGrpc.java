package dev.turngate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Executes runs: drives the agent, streams text, tool calls and render hints, parks, and resumes. Keeps no
 * state between runs.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class RunnerServiceGrpc {

  private RunnerServiceGrpc() {}

  public static final String SERVICE_NAME = "turngate.v1.RunnerService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ExecuteRequest,
      dev.turngate.v1.ExecuteResponse> getExecuteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Execute",
      requestType = dev.turngate.v1.ExecuteRequest.class,
      responseType = dev.turngate.v1.ExecuteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ExecuteRequest,
      dev.turngate.v1.ExecuteResponse> getExecuteMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ExecuteRequest, dev.turngate.v1.ExecuteResponse> getExecuteMethod;
    if ((getExecuteMethod = RunnerServiceGrpc.getExecuteMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getExecuteMethod = RunnerServiceGrpc.getExecuteMethod) == null) {
          RunnerServiceGrpc.getExecuteMethod = getExecuteMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ExecuteRequest, dev.turngate.v1.ExecuteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Execute"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ExecuteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ExecuteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunnerServiceMethodDescriptorSupplier("Execute"))
              .build();
        }
      }
    }
    return getExecuteMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.ExtractToolResultsRequest,
      dev.turngate.v1.ExtractToolResultsResponse> getExtractToolResultsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExtractToolResults",
      requestType = dev.turngate.v1.ExtractToolResultsRequest.class,
      responseType = dev.turngate.v1.ExtractToolResultsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.ExtractToolResultsRequest,
      dev.turngate.v1.ExtractToolResultsResponse> getExtractToolResultsMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.ExtractToolResultsRequest, dev.turngate.v1.ExtractToolResultsResponse> getExtractToolResultsMethod;
    if ((getExtractToolResultsMethod = RunnerServiceGrpc.getExtractToolResultsMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getExtractToolResultsMethod = RunnerServiceGrpc.getExtractToolResultsMethod) == null) {
          RunnerServiceGrpc.getExtractToolResultsMethod = getExtractToolResultsMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.ExtractToolResultsRequest, dev.turngate.v1.ExtractToolResultsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExtractToolResults"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ExtractToolResultsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.ExtractToolResultsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunnerServiceMethodDescriptorSupplier("ExtractToolResults"))
              .build();
        }
      }
    }
    return getExtractToolResultsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.turngate.v1.DescribeAgentsRequest,
      dev.turngate.v1.DescribeAgentsResponse> getDescribeAgentsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DescribeAgents",
      requestType = dev.turngate.v1.DescribeAgentsRequest.class,
      responseType = dev.turngate.v1.DescribeAgentsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.turngate.v1.DescribeAgentsRequest,
      dev.turngate.v1.DescribeAgentsResponse> getDescribeAgentsMethod() {
    io.grpc.MethodDescriptor<dev.turngate.v1.DescribeAgentsRequest, dev.turngate.v1.DescribeAgentsResponse> getDescribeAgentsMethod;
    if ((getDescribeAgentsMethod = RunnerServiceGrpc.getDescribeAgentsMethod) == null) {
      synchronized (RunnerServiceGrpc.class) {
        if ((getDescribeAgentsMethod = RunnerServiceGrpc.getDescribeAgentsMethod) == null) {
          RunnerServiceGrpc.getDescribeAgentsMethod = getDescribeAgentsMethod =
              io.grpc.MethodDescriptor.<dev.turngate.v1.DescribeAgentsRequest, dev.turngate.v1.DescribeAgentsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DescribeAgents"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.DescribeAgentsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.turngate.v1.DescribeAgentsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RunnerServiceMethodDescriptorSupplier("DescribeAgents"))
              .build();
        }
      }
    }
    return getDescribeAgentsMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static RunnerServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceStub>() {
        @java.lang.Override
        public RunnerServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceStub(channel, callOptions);
        }
      };
    return RunnerServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static RunnerServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceBlockingStub>() {
        @java.lang.Override
        public RunnerServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceBlockingStub(channel, callOptions);
        }
      };
    return RunnerServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static RunnerServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RunnerServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RunnerServiceFutureStub>() {
        @java.lang.Override
        public RunnerServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RunnerServiceFutureStub(channel, callOptions);
        }
      };
    return RunnerServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Executes runs: drives the agent, streams text, tool calls and render hints, parks, and resumes. Keeps no
   * state between runs.
   * </pre>
   */
  public static abstract class RunnerServiceImplBase implements io.grpc.BindableService {

    /**
     * <pre>
     * Executes one attempt of one run. The broker sends the start, the history, then acknowledgements and
     * perhaps a cancel; the runner sends events. A caller by hand (grpcurl: one that names no
     * `protocol_revision`) that sends start and history and closes its side acknowledges everything in advance, and
     * grants what needs no approval. Errors:
     * `RUNNER_BUSY`, `AGENT_NOT_FOUND`, `PROTOCOL_VIOLATION`, `INVALID_FIELD`, `SHUTTING_DOWN`.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.turngate.v1.ExecuteRequest> execute(
        io.grpc.stub.StreamObserver<dev.turngate.v1.ExecuteResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getExecuteMethod(), responseObserver);
    }

    /**
     * <pre>
     * Takes out of a transcript what belongs to its current turn (rules X1 to X7): answers to client calls,
     * decisions, used call ids. For runners and tests in other languages. Errors: `INVALID_TRANSCRIPT`,
     * `INVALID_JSON`.
     * </pre>
     */
    public void extractToolResults(dev.turngate.v1.ExtractToolResultsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ExtractToolResultsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExtractToolResultsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Describes the agents that this runner serves.
     * </pre>
     */
    public void describeAgents(dev.turngate.v1.DescribeAgentsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.DescribeAgentsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDescribeAgentsMethod(), responseObserver);
    }

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
          .addMethod(
            getExecuteMethod(),
            io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
              new MethodHandlers<
                dev.turngate.v1.ExecuteRequest,
                dev.turngate.v1.ExecuteResponse>(
                  this, METHODID_EXECUTE)))
          .addMethod(
            getExtractToolResultsMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.ExtractToolResultsRequest,
                dev.turngate.v1.ExtractToolResultsResponse>(
                  this, METHODID_EXTRACT_TOOL_RESULTS)))
          .addMethod(
            getDescribeAgentsMethod(),
            io.grpc.stub.ServerCalls.asyncUnaryCall(
              new MethodHandlers<
                dev.turngate.v1.DescribeAgentsRequest,
                dev.turngate.v1.DescribeAgentsResponse>(
                  this, METHODID_DESCRIBE_AGENTS)))
          .build();
    }
  }

  /**
   * <pre>
   * Executes runs: drives the agent, streams text, tool calls and render hints, parks, and resumes. Keeps no
   * state between runs.
   * </pre>
   */
  public static final class RunnerServiceStub extends io.grpc.stub.AbstractAsyncStub<RunnerServiceStub> {
    private RunnerServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Executes one attempt of one run. The broker sends the start, the history, then acknowledgements and
     * perhaps a cancel; the runner sends events. A caller by hand (grpcurl: one that names no
     * `protocol_revision`) that sends start and history and closes its side acknowledges everything in advance, and
     * grants what needs no approval. Errors:
     * `RUNNER_BUSY`, `AGENT_NOT_FOUND`, `PROTOCOL_VIOLATION`, `INVALID_FIELD`, `SHUTTING_DOWN`.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.turngate.v1.ExecuteRequest> execute(
        io.grpc.stub.StreamObserver<dev.turngate.v1.ExecuteResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getExecuteMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Takes out of a transcript what belongs to its current turn (rules X1 to X7): answers to client calls,
     * decisions, used call ids. For runners and tests in other languages. Errors: `INVALID_TRANSCRIPT`,
     * `INVALID_JSON`.
     * </pre>
     */
    public void extractToolResults(dev.turngate.v1.ExtractToolResultsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.ExtractToolResultsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExtractToolResultsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Describes the agents that this runner serves.
     * </pre>
     */
    public void describeAgents(dev.turngate.v1.DescribeAgentsRequest request,
        io.grpc.stub.StreamObserver<dev.turngate.v1.DescribeAgentsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDescribeAgentsMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * <pre>
   * Executes runs: drives the agent, streams text, tool calls and render hints, parks, and resumes. Keeps no
   * state between runs.
   * </pre>
   */
  public static final class RunnerServiceBlockingStub extends io.grpc.stub.AbstractBlockingStub<RunnerServiceBlockingStub> {
    private RunnerServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Takes out of a transcript what belongs to its current turn (rules X1 to X7): answers to client calls,
     * decisions, used call ids. For runners and tests in other languages. Errors: `INVALID_TRANSCRIPT`,
     * `INVALID_JSON`.
     * </pre>
     */
    public dev.turngate.v1.ExtractToolResultsResponse extractToolResults(dev.turngate.v1.ExtractToolResultsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExtractToolResultsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes the agents that this runner serves.
     * </pre>
     */
    public dev.turngate.v1.DescribeAgentsResponse describeAgents(dev.turngate.v1.DescribeAgentsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDescribeAgentsMethod(), getCallOptions(), request);
    }
  }

  /**
   * <pre>
   * Executes runs: drives the agent, streams text, tool calls and render hints, parks, and resumes. Keeps no
   * state between runs.
   * </pre>
   */
  public static final class RunnerServiceFutureStub extends io.grpc.stub.AbstractFutureStub<RunnerServiceFutureStub> {
    private RunnerServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RunnerServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RunnerServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Takes out of a transcript what belongs to its current turn (rules X1 to X7): answers to client calls,
     * decisions, used call ids. For runners and tests in other languages. Errors: `INVALID_TRANSCRIPT`,
     * `INVALID_JSON`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.ExtractToolResultsResponse> extractToolResults(
        dev.turngate.v1.ExtractToolResultsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExtractToolResultsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Describes the agents that this runner serves.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.turngate.v1.DescribeAgentsResponse> describeAgents(
        dev.turngate.v1.DescribeAgentsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDescribeAgentsMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_EXTRACT_TOOL_RESULTS = 0;
  private static final int METHODID_DESCRIBE_AGENTS = 1;
  private static final int METHODID_EXECUTE = 2;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final RunnerServiceImplBase serviceImpl;
    private final int methodId;

    MethodHandlers(RunnerServiceImplBase serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_EXTRACT_TOOL_RESULTS:
          serviceImpl.extractToolResults((dev.turngate.v1.ExtractToolResultsRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ExtractToolResultsResponse>) responseObserver);
          break;
        case METHODID_DESCRIBE_AGENTS:
          serviceImpl.describeAgents((dev.turngate.v1.DescribeAgentsRequest) request,
              (io.grpc.stub.StreamObserver<dev.turngate.v1.DescribeAgentsResponse>) responseObserver);
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
        case METHODID_EXECUTE:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.execute(
              (io.grpc.stub.StreamObserver<dev.turngate.v1.ExecuteResponse>) responseObserver);
        default:
          throw new AssertionError();
      }
    }
  }

  private static abstract class RunnerServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    RunnerServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.turngate.v1.Runner.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("RunnerService");
    }
  }

  private static final class RunnerServiceFileDescriptorSupplier
      extends RunnerServiceBaseDescriptorSupplier {
    RunnerServiceFileDescriptorSupplier() {}
  }

  private static final class RunnerServiceMethodDescriptorSupplier
      extends RunnerServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final String methodName;

    RunnerServiceMethodDescriptorSupplier(String methodName) {
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
      synchronized (RunnerServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new RunnerServiceFileDescriptorSupplier())
              .addMethod(getExecuteMethod())
              .addMethod(getExtractToolResultsMethod())
              .addMethod(getDescribeAgentsMethod())
              .build();
        }
      }
    }
    return result;
  }
}
