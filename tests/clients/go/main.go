// Asks for a trip and answers the form with the given output. Prints the form's arguments and the reply.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	turngatev1 "github.com/turngate/turngate/gen/go/turngate/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

func main() {
	if err := talk(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func talk(address, output string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	broker := turngatev1.NewBrokerServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "turngate-user", "ann")

	created, err := broker.CreateSession(ctx, &turngatev1.CreateSessionRequest{
		Config: &turngatev1.SessionConfig{Agent: "trip"},
	})
	if err != nil {
		return err
	}
	session := created.GetSession().GetId()
	if _, err := broker.SendMessage(ctx, &turngatev1.SendMessageRequest{
		SessionId: session, Text: "Plan a trip",
	}); err != nil {
		return err
	}
	frames, err := broker.WatchSession(ctx, &turngatev1.WatchSessionRequest{SessionId: session})
	if err != nil {
		return err
	}

	var fork string
	var reply strings.Builder
	for {
		frame, err := frames.Recv()
		if err != nil {
			return err
		}
		for _, event := range frame.GetEvents() {
			switch it := event.GetEvent().(type) {
			case *turngatev1.SessionEvent_MessageCompleted:
				message := it.MessageCompleted.GetMessage()
				for _, part := range message.GetParts() {
					if call := part.GetToolCall(); call != nil {
						fmt.Println(call.GetArgumentsJson())
					} else if message.GetRunId() == fork {
						reply.WriteString(part.GetText().GetText())
					}
				}
			case *turngatev1.SessionEvent_InteractionOpened:
				settled, err := broker.SettleToolCall(ctx, &turngatev1.SettleToolCallRequest{
					SessionId: session,
					Interaction: &turngatev1.InteractionRef{
						InteractionId: it.InteractionOpened.GetInteraction().GetId(),
					},
					Answer: &turngatev1.SettleToolCallRequest_OutputJson{OutputJson: output},
				})
				if err != nil {
					return err
				}
				fork = settled.GetRunId()
			case *turngatev1.SessionEvent_RunStateChanged:
				change := it.RunStateChanged
				if change.GetRunId() == fork &&
					change.GetState() == turngatev1.RunState_RUN_STATE_COMPLETED {
					fmt.Println(reply.String())
					return nil
				}
			}
		}
	}
}
