// `useChat` in a page without a screen, against a real server. JSON in on stdin: {address, key, scene, sdk}; JSON out:
// {messages, errors, calls}. A scene is what a page does that people have built.
import { readFileSync } from "node:fs";
import { Window } from "happy-dom";

const asked = JSON.parse(readFileSync(0, "utf8"));
const window = new Window({ url: "http://127.0.0.1/" });
// Only what React needs; `fetch` stays that of node, as a page's is that of its browser.
Object.assign(globalThis, { window, document: window.document });
Object.defineProperty(globalThis, "navigator", { value: window.navigator, configurable: true });

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import("@ai-sdk/react");
const sdk = await import("ai");

const headers = { authorization: `Bearer ${asked.key}` };
const errors = [];
const calls = [];
const onToolCalls = [];
let latest;

const Page = ({ options, act }) => {
  const chat = useChat({ onError: (error) => void errors.push(error.message), ...options });
  latest = chat;
  useEffect(() => void act?.(chat), [chat.status, chat.messages]);
  return null;
};

const root = createRoot(window.document.createElement("div"));
const rest = (ms) => new Promise((go) => setTimeout(go, ms));
const until = async (is) => {
  for (let turn = 0; turn < 800; turn += 1) {
    if (latest && is(latest)) return;
    await rest(10);
  }
  throw new Error(`it never came to that: ${JSON.stringify(latest?.messages)} ${latest?.status} ${errors}`);
};
const tools = (chat) => chat.messages.flatMap((message) => message.parts).filter(sdk.isToolUIPart);
const text = (chat) => chat.messages.flatMap((m) => m.parts).filter((p) => p.type === "text").map((p) => p.text).join("|");

const transport = (query, body) =>
  new sdk.DefaultChatTransport({
    api: `${asked.address}/ai-sdk/chat`,
    headers,
    body,
    fetch: (url, init) => {
      calls.push(`${init.method ?? "GET"} ${new URL(url).pathname}`);
      return fetch(`${url}?${query}`, init);
    },
  });

const show = (options, act) => root.render(createElement(Page, { options: { id: "c1", ...options }, act, key: options.key }));
const answered = new Set();

const scenes = {
  // The stream ends at an approval, and the answer goes with the next request, all by itself.
  async closed() {
    const when = sdk.lastAssistantMessageIsCompleteWithApprovalResponses;
    show({ transport: transport(`sdk=${asked.sdk}`), sendAutomaticallyWhen: when, onToolCall: (c) => void onToolCalls.push(c.toolCall.toolName) }, (chat) => {
      for (const part of tools(chat)) {
        if (part.state === "approval-requested" && chat.status === "ready" && !answered.has(part.approval.id)) {
          answered.add(part.approval.id);
          chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
        }
      }
    });
    await until((chat) => chat.status === "ready");
    latest.sendMessage({ text: "Mail Bob" });
    await until((chat) => text(chat).includes("It was sent.") && chat.status === "ready");
  },
  // The stream stays open, and the answer goes beside it.
  async open() {
    show({ transport: transport(`sdk=${asked.sdk}&approvals=open`), onToolCall: (c) => void onToolCalls.push(c.toolCall.toolName) }, (chat) => {
      for (const part of tools(chat)) {
        if (part.state === "approval-requested" && !answered.has(part.approval.id)) {
          answered.add(part.approval.id);
          const body = JSON.stringify({ approved: true });
          const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
          fetch(`${asked.address}/ai-sdk/chat/c1/approvals/${part.approval.id}`, init);
        }
      }
    });
    await until((chat) => chat.status === "ready");
    latest.sendMessage({ text: "Mail Bob" });
    await until((chat) => text(chat).includes("It was sent.") && chat.status === "ready");
  },
  // A tool of the page's own.
  async client() {
    show({
      transport: transport(`sdk=${asked.sdk}`, { clients: asked.clients }),
      sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall }) {
        onToolCalls.push(toolCall.toolName);
        latest.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: "ding" });
      },
    });
    await until((chat) => chat.status === "ready");
    latest.sendMessage({ text: "Ring" });
    await until((chat) => text(chat).includes("It rang.") && chat.status === "ready");
    await rest(200); // whether it sends again by itself
  },
  // A page that is closed in the middle of an answer, and opened again.
  async resume() {
    show({ transport: transport(`sdk=${asked.sdk}`), key: "one" });
    await until((chat) => chat.status === "ready");
    latest.sendMessage({ text: "Hello" });
    await until((chat) => text(chat).length > 6);
    await latest.stop(); // which is only to leave
    latest = undefined;
    const said = { id: "u1", role: "user", parts: [{ type: "text", text: "Hello" }] };
    show({ transport: transport(`sdk=${asked.sdk}`), key: "two", messages: [said], resume: true, id: "c1" });
    await until((chat) => text(chat).includes(asked.ends) && chat.status === "ready");
  },
  // Another answer, to the same message.
  async regenerate() {
    show({ transport: transport(`sdk=${asked.sdk}`) });
    await until((chat) => chat.status === "ready");
    await latest.sendMessage({ text: "Hello" });
    await until((chat) => chat.status === "ready" && chat.messages.length === 2);
    const first = latest.messages[1].id;
    await latest.regenerate();
    await until((chat) => chat.status === "ready" && chat.messages.length === 2 && chat.messages[1].id !== first);
  },
};

await scenes[asked.scene]();
process.stdout.write(JSON.stringify({ messages: latest.messages, errors, calls, onToolCalls }));
process.exit(0);
