// Recorded streams → what the real clients make of them. JSON in on stdin: a list of {client, streams, message?}; JSON out:
// a list of {message, error}. The bytes come in pieces of `piece` characters, as a network would have it.
import { readFileSync } from "node:fs";

const played = async ({ client, streams, piece }) => {
  const { DefaultChatTransport, readUIMessageStream } = await import(client);
  let message;
  const errors = [];
  for (const text of streams) {
    const bytes = new TextEncoder().encode(text);
    const fetch = async () =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (let at = 0; at < bytes.length; at += piece) controller.enqueue(bytes.slice(at, at + piece));
            controller.close();
          },
        }),
        { headers: { "content-type": "text/event-stream", "x-vercel-ai-ui-message-stream": "v1" } },
      );
    try {
      const stream = await new DefaultChatTransport({ fetch }).sendMessages({
        chatId: "c", messages: [], trigger: "submit-message", abortSignal: undefined,
      });
      const reading = readUIMessageStream({ stream, message, terminateOnError: false, onError: (e) => errors.push(e.message) });
      for await (const state of reading) message = state;
    } catch (error) {
      errors.push(`${error.name}: ${error.message}`);
    }
  }
  return { message, errors };
};

const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const one of asked) answers.push(await played(one));
process.stdout.write(JSON.stringify(answers));
