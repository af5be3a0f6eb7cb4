// HttpAgent of AG-UI against a real server. JSON in on stdin: {address, key, text, payload, tools, error}; JSON out:
// {messages, outcomes, errors}. Interrupts are answered with `payload`, and tools of its own with "ding".
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";

const asked = JSON.parse(readFileSync(0, "utf8"));
const agent = new HttpAgent({
  url: `${asked.address}/ag-ui`,
  threadId: "t1",
  headers: { authorization: `Bearer ${asked.key}` },
  initialMessages: [{ id: "u1", role: "user", content: asked.text }],
});
const outcomes = [];
const errors = [];
let resume;
for (let run = 0; run < 6; run += 1) {
  let outcome;
  try {
    await agent.runAgent({ runId: `r${run}`, tools: asked.tools ?? [], ...(resume ? { resume } : {}) }, {
      onRunFinishedEvent: ({ event }) => void (outcome = event.outcome ?? { type: "none" }),
      onRunErrorEvent: ({ event }) => void (outcome = { type: "error", message: event.message }),
    });
  } catch (error) {
    errors.push(`${error.name}: ${error.message}`);
    break;
  }
  outcomes.push(outcome);
  resume = undefined;
  if (outcome?.type === "interrupt") {
    resume = outcome.interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: asked.payload }));
  } else if (outcome?.pendingToolCallIds?.length) {
    for (const id of outcome.pendingToolCallIds) {
      agent.addMessage({ id: `result-${id}`, role: "tool", toolCallId: id, content: "ding" });
    }
  } else break;
}
process.stdout.write(JSON.stringify({ messages: agent.messages, outcomes, errors }));
process.exit(0);
