// Recorded runs → what HttpAgent of AG-UI makes of them. JSON in on stdin: a list of {runs, piece}; JSON out: a list of
// {messages, errors, interrupts}.
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";

const played = async ({ runs, piece }) => {
  const agent = new HttpAgent({ url: "http://127.0.0.1:9/ag-ui", threadId: "t" });
  const errors = [];
  const outcomes = [];
  for (const { text, resume, runId } of runs) {
    const bytes = new TextEncoder().encode(text);
    globalThis.fetch = async () =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (let at = 0; at < bytes.length; at += piece) controller.enqueue(bytes.slice(at, at + piece));
            controller.close();
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      );
    try {
      await agent.runAgent({ runId, ...(resume ? { resume } : {}) }, {
        onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome ?? null),
        onRunErrorEvent: ({ event }) => void outcomes.push({ type: "error", message: event.message, code: event.code }),
      });
    } catch (error) {
      errors.push(`${error.name}: ${error.message}`);
    }
  }
  return { messages: agent.messages, errors, outcomes };
};

const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const one of asked) answers.push(await played(one));
process.stdout.write(JSON.stringify(answers));
