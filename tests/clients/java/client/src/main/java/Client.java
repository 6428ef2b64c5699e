import dev.turngate.v1.BrokerServiceGrpc;
import dev.turngate.v1.CreateSessionRequest;
import dev.turngate.v1.InteractionRef;
import dev.turngate.v1.Part;
import dev.turngate.v1.RunState;
import dev.turngate.v1.SendMessageRequest;
import dev.turngate.v1.SessionConfig;
import dev.turngate.v1.SessionEvent;
import dev.turngate.v1.SettleToolCallRequest;
import dev.turngate.v1.WatchSessionRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.stub.MetadataUtils;
import java.util.concurrent.TimeUnit;

/** Asks for a trip and answers the form with the given output. Prints the form's arguments and the reply. */
public final class Client {
  public static void main(String[] args) {
    String address = args[0];
    String output = args[1];
    ManagedChannel channel =
        Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
    try {
      Metadata caller = new Metadata();
      caller.put(Metadata.Key.of("turngate-user", Metadata.ASCII_STRING_MARSHALLER), "ann");
      BrokerServiceGrpc.BrokerServiceBlockingStub broker =
          BrokerServiceGrpc.newBlockingStub(channel)
              .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(caller))
              .withDeadlineAfter(30, TimeUnit.SECONDS);
      talk(broker, output);
    } finally {
      channel.shutdownNow();
    }
  }

  private static void talk(BrokerServiceGrpc.BrokerServiceBlockingStub broker, String output) {
    String session =
        broker
            .createSession(
                CreateSessionRequest.newBuilder()
                    .setConfig(SessionConfig.newBuilder().setAgent("trip"))
                    .build())
            .getSession()
            .getId();
    broker.sendMessage(
        SendMessageRequest.newBuilder().setSessionId(session).setText("Plan a trip").build());
    var frames =
        broker.watchSession(WatchSessionRequest.newBuilder().setSessionId(session).build());
    String fork = "";
    StringBuilder reply = new StringBuilder();
    while (frames.hasNext()) {
      for (SessionEvent event : frames.next().getEventsList()) {
        switch (event.getEventCase()) {
          case MESSAGE_COMPLETED -> {
            var message = event.getMessageCompleted().getMessage();
            for (Part part : message.getPartsList()) {
              if (part.hasToolCall()) {
                System.out.println(part.getToolCall().getArgumentsJson());
              } else if (message.getRunId().equals(fork)) {
                reply.append(part.getText().getText());
              }
            }
          }
          case INTERACTION_OPENED ->
              fork =
                  broker
                      .settleToolCall(
                          SettleToolCallRequest.newBuilder()
                              .setSessionId(session)
                              .setInteraction(
                                  InteractionRef.newBuilder()
                                      .setInteractionId(
                                          event.getInteractionOpened().getInteraction().getId()))
                              .setOutputJson(output)
                              .build())
                      .getRunId();
          case RUN_STATE_CHANGED -> {
            var change = event.getRunStateChanged();
            if (change.getRunId().equals(fork)
                && change.getState() == RunState.RUN_STATE_COMPLETED) {
              System.out.println(reply);
              return;
            }
          }
          default -> {}
        }
      }
    }
    throw new IllegalStateException("the watch ended before the run did");
  }
}
