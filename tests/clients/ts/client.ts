// Asks for a trip and answers the form with the given output. Prints the form's arguments and the reply.
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { BrokerService } from "@turngate/contract/turngate/v1/broker_pb.js";
import { RunState } from "@turngate/contract/turngate/v1/run_pb.js";

async function talk(address: string, output: string, signal: AbortSignal): Promise<string> {
  const caller: Interceptor = (next) => (request) => {
    request.header.set("turngate-user", "ann");
    return next(request);
  };
  const transport = createGrpcTransport({
    baseUrl: `http://${address}`,
    interceptors: [caller],
  });
  const broker = createClient(BrokerService, transport);
  const { session } = await broker.createSession({ config: { agent: "trip" } }, { signal });
  const sessionId = session?.id ?? "";
  await broker.sendMessage({ sessionId, text: "Plan a trip" }, { signal });

  let fork = "";
  let reply = "";
  for await (const frame of broker.watchSession({ sessionId }, { signal })) {
    for (const { event } of frame.events) {
      switch (event.case) {
        case "messageCompleted":
          for (const { content } of event.value.message?.parts ?? []) {
            if (content.case === "toolCall") {
              console.log(content.value.argumentsJson);
            } else if (content.case === "text" && event.value.message?.runId === fork) {
              reply += content.value.text;
            }
          }
          break;
        case "interactionOpened": {
          const settlement = {
            sessionId,
            interaction: { interactionId: event.value.interaction?.id ?? "" },
            answer: { case: "outputJson" as const, value: output },
          };
          fork = (await broker.settleToolCall(settlement, { signal })).runId;
          break;
        }
        case "runStateChanged":
          if (event.value.runId === fork && event.value.state === RunState.COMPLETED) {
            return reply;
          }
      }
    }
  }
  throw new Error("the watch ended before the run did");
}

const [address, output] = process.argv.slice(2);
if (address === undefined || output === undefined) throw new Error("usage: client ADDRESS OUTPUT");
const over = new AbortController();
const deadline = setTimeout(() => over.abort(new Error("not done after 30 s")), 30_000);
try {
  console.log(await talk(address, output, over.signal));
} finally {
  clearTimeout(deadline);
  over.abort(); // the watch
}
