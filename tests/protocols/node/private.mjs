// One conversation name, used by several people with HttpAgent of AG-UI and the transport of the AI SDK. JSON in on stdin:
// {address, thread, people: [{key, text}]}; JSON out: for each what AG-UI and the AI SDK gave them, as text.
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";
import { DefaultChatTransport } from "ai";

const asked = JSON.parse(readFileSync(0, "utf8"));
const read = async (open) => {
  try {
    const stream = await open();
    if (stream === null) return "nothing runs";
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return JSON.stringify(chunks);
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
};
const found = [];
for (const { key, text, resume } of asked.people) {
  const headers = { authorization: `Bearer ${key}` };
  const agent = new HttpAgent({ url: `${asked.address}/ag-ui`, threadId: asked.thread, headers, initialMessages: [{ id: "u1", role: "user", content: text }] });
  const events = [];
  try {
    await agent.runAgent({ runId: "r1", ...(resume ? { resume } : {}) }, { onEvent: ({ event }) => void events.push(event) });
  } catch (error) {
    events.push(`${error.name}: ${error.message}`);
  }
  const transport = new DefaultChatTransport({ api: `${asked.address}/ai-sdk/chat`, headers });
  const chatId = asked.thread;
  found.push({
    agUi: JSON.stringify(events),
    reconnected: await read(() => transport.reconnectToStream({ chatId })),
    sent: await read(() => transport.sendMessages({ trigger: "submit-message", chatId, messages: [{ id: "m1", role: "user", parts: [{ type: "text", text }] }] })),
    again: await read(() => transport.reconnectToStream({ chatId })),
  });
}
console.log(JSON.stringify(found));
