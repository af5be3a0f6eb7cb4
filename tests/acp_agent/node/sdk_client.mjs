// The client of the official TypeScript SDK: `sdk_client.mjs FOLDER SESSION|- PROMPT -- COMMAND…`, as sdk_client.py.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const home = `${process.env.CLIENTS}/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js`;
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(home).href);

const [folder, wanted, prompt] = process.argv.slice(2, 5);
const [program, ...words] = process.argv.slice(process.argv.indexOf("--") + 1);
const agent = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
const seen = { text: "", asked: 0, calls: {} };

const app = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === "agent_message_chunk") seen.text += update.content.text;
    if (update.sessionUpdate.startsWith("tool_call") && update.status) seen.calls[update.toolCallId] = update.status;
  })
  .onRequest(methods.client.session.requestPermission, ({ params: { options } }) => {
    seen.asked += 1;
    const chosen = options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  });

const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (ctx) => {
  const started = await ctx.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION });
  let sessionId = wanted;
  if (wanted === "-") ({ sessionId } = await ctx.request(methods.agent.session.new, { cwd: folder, mcpServers: [] }));
  else await ctx.request(methods.agent.session.load, { cwd: folder, sessionId, mcpServers: [] });
  let stop = "";
  if (prompt) {
    const answer = await ctx.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: "text", text: prompt }],
    });
    stop = answer.stopReason;
  }
  const done = { ...seen, session: sessionId, stop, calls: Object.values(seen.calls) };
  console.log(JSON.stringify({ ...done, agent: started.agentInfo.name }));
});
agent.stdin.end();
