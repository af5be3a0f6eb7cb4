/**
 * The tools that this browser offers: what a message says of them, and what runs them. Only the declarations are here; what
 * runs them is fetched with the first call.
 */
import { isOver, openGates, type ClientTool, type GateState, type SessionFollower, type TurnState } from "@everturn/client";
import { me } from "../app/app";
import { settings, type Settings } from "../app/settings";
import { BROWSER_JS_EVAL } from "./eval.gen";

export type ToolName = "browser_js_eval" | "list_directory" | "read_file" | "write_file";
export type Policy = Settings["browserTools"][string];

/** Tools for a page of settings: how they are called there, and what holds while nobody has chosen. */
export interface BrowserTool {
  readonly name: ToolName;
  readonly label: { readonly en: string; readonly zh: string };
  readonly about: { readonly en: string; readonly zh: string };
  readonly standard: Policy;
}

export const BROWSER_TOOLS: readonly BrowserTool[] = [
  {
    name: "browser_js_eval",
    label: { en: "Run JavaScript", zh: "运行 JavaScript" },
    about: { en: "In a sandbox of this browser, without network, cookies or this page.", zh: "在本浏览器的沙箱中运行，无法访问网络、Cookie 和本页面。" },
    standard: "ask_once",
  },
  {
    name: "list_directory",
    label: { en: "List files", zh: "列出文件" },
    about: { en: "Of the conversation, kept in this browser.", zh: "对话保存在本浏览器中的文件。" },
    standard: "auto",
  },
  {
    name: "read_file",
    label: { en: "Read files", zh: "读取文件" },
    about: { en: "Of the conversation, kept in this browser.", zh: "对话保存在本浏览器中的文件。" },
    standard: "auto",
  },
  {
    name: "write_file",
    label: { en: "Write files", zh: "写入文件" },
    about: { en: "For the conversation; they stay in this browser.", zh: "写入的文件仅保存在本浏览器中。" },
    standard: "ask_once",
  },
];

/** How a tool of ours is known in any version of this page, and told from one of the same name that an editor brings. */
const HERE = "in the person's browser";
const path = { type: "string", maxLength: 512, description: "Beneath the root, like 'notes/today.md'. No '..', no leading '/'." };
const object = (properties: Record<string, unknown>, ...required: string[]) => ({ type: "object", properties, required, additionalProperties: false });

const DECLARED: Readonly<Record<ToolName, Omit<ClientTool, "name">>> = {
  browser_js_eval: BROWSER_JS_EVAL,
  list_directory: {
    description: `List a directory of the files that this conversation keeps ${HERE}.`,
    schema: object({ path: { ...path, description: "The directory; '' is the root." } }),
    effects: "read",
  },
  read_file: {
    description: `Read a text file that this conversation keeps ${HERE}.`,
    schema: object(
      {
        path,
        offset: { type: "integer", minimum: 1, description: "The first line to read; 1 if left out." },
        limit: { type: "integer", minimum: 1, maximum: 10_000, description: "How many lines; 2000 if left out." },
      },
      "path",
    ),
    effects: "read",
  },
  write_file: {
    description: `Write a text file that this conversation keeps ${HERE}; what was there before is gone.`,
    schema: object({ path, content: { type: "string", maxLength: 1_000_000 } }, "path", "content"),
    effects: "write",
  },
};
const LEASE = 15; // seconds until another tab may do what a closed one has left

const policy = (tool: BrowserTool): Policy => settings.value.browserTools[tool.name] ?? tool.standard;

/** What is sent with a message. `taken` are names the agent's own tools have; ours stand aside as `browser_…`. */
export function clientTools(taken: ReadonlySet<string>): ClientTool[] {
  const declared: ClientTool[] = [];
  for (const tool of BROWSER_TOOLS) {
    const execute = policy(tool);
    const name = taken.has(tool.name) ? `browser_${tool.name}` : tool.name;
    if (execute !== "off" && !taken.has(name)) declared.push({ name, ...DECLARED[tool.name], execute, lease: LEASE });
  }
  return declared;
}

/** Which of our tools a turn means by a name: one that its sender declared as ours, and that is not off here. */
export function toolOf(turn: TurnState, name: string): ToolName | null {
  const declared = turn.options.clients?.find((one) => one.name === name);
  const tool = BROWSER_TOOLS.find((one) => one.name === name || `browser_${one.name}` === name);
  if (!tool || !declared?.description.includes(HERE) || policy(tool) === "off") return null;
  const who = me.value;
  const isMine = !turn.options.by || (who !== null && who !== "stranger" && who.user === turn.options.by);
  return isMine ? tool.name : null; // files of another person's are in the browser of that person
}

/** The calls of a session that are for this browser to run. */
export function waiting(session: SessionFollower): GateState[] {
  const turns = [...session.state.turns.values()].filter((turn) => !isOver(turn));
  return turns.flatMap((turn) => openGates(turn).filter(({ gate }) => gate.kind === "client" && toolOf(turn, gate.tool)));
}

/** Run the calls of a session that are for a client, as long as the page shows it; the answer ends that. */
export function serveBrowserTools(session: SessionFollower): () => void {
  const over = new AbortController();
  const stops = new Map<string, () => void>();
  let look: (() => void) | null = null;
  let isComing = false;

  const see = () => {
    for (const turn of session.state.turns.values()) {
      if (stops.has(turn.id) === !isOver(turn)) continue;
      stops.get(turn.id)?.();
      if (!stops.delete(turn.id)) stops.set(turn.id, session.subscribe(`turn:${turn.id}`, see));
    }
    const mayNeed = () => [...session.state.turns.values()].some((turn) => stops.has(turn.id) && [...turn.calls.values()].some((call) => call.below.length));
    if (look) look();
    else if (!isComing && (waiting(session).length || mayNeed())) {
      isComing = true;
      void import("./serving").then(
        ({ serve }) => { if (!over.signal.aborted) look = serve(session, over.signal); },
        () => { isComing = false; }, // the next word of the session tries again
      );
    }
  };
  const stopTree = session.subscribe("tree", see);
  see();
  return () => {
    over.abort();
    stopTree();
    for (const stop of stops.values()) stop();
  };
}

/** Remove the files that a conversation has in this browser. */
export async function forgetFiles(session: string): Promise<void> {
  await (await (await import("./files")).filesOf(session)).clear();
}
