/** Browser tools: their declarations, and the calls of them that wait. */
import { isOver, openGates, type ClientTool, type GateState, type SessionFollower, type TurnState } from "@everturn/client";
import { me } from "../app/app";
import { settings, type Settings } from "../app/settings";
import { BROWSER_JS_EVAL } from "./eval.gen";
import type { ToolName } from "./toolName";

export type Policy = Settings["browserTools"][string];

/** A browser tool on the settings page, and its default policy. */
export interface BrowserTool {
  readonly name: ToolName;
  readonly label: { readonly en: string; readonly zh: string };
  readonly about: { readonly en: string; readonly zh: string };
  readonly defaultPolicy: Policy;
}

export const BROWSER_TOOLS: readonly BrowserTool[] = [
  {
    name: "browser_js_eval",
    label: { en: "Run JavaScript", zh: "运行 JavaScript" },
    about: { en: "In a sandbox of this browser, without network, cookies or this page.", zh: "在本浏览器的沙箱中运行，无法访问网络、Cookie 和本页面。" },
    defaultPolicy: "ask",
  },
  {
    name: "list_directory",
    label: { en: "List files", zh: "列出文件" },
    about: { en: "Of the conversation, kept in this browser.", zh: "对话保存在本浏览器中的文件。" },
    defaultPolicy: "auto",
  },
  {
    name: "read_file",
    label: { en: "Read files", zh: "读取文件" },
    about: { en: "Of the conversation, kept in this browser.", zh: "对话保存在本浏览器中的文件。" },
    defaultPolicy: "auto",
  },
  {
    name: "write_file",
    label: { en: "Write files", zh: "写入文件" },
    about: { en: "For the conversation; they stay in this browser.", zh: "写入的文件仅保存在本浏览器中。" },
    defaultPolicy: "ask",
  },
];

/** Identifies our tools in any version of the web UI, and tells them from tools of the same name of an editor. */
const ORIGIN_MARK = "in the person's browser";
const pathSchema = { type: "string", maxLength: 512, description: "Beneath the root, like 'notes/today.md'. No '..', no leading '/'." };
const objectSchema = (properties: Record<string, unknown>, ...required: string[]) => ({ type: "object", properties, required, additionalProperties: false });

const DECLARATIONS: Readonly<Record<ToolName, Omit<ClientTool, "name">>> = {
  browser_js_eval: BROWSER_JS_EVAL,
  list_directory: {
    description: `List a directory of the files that this conversation keeps ${ORIGIN_MARK}.`,
    schema: objectSchema({ path: { ...pathSchema, description: "The directory; '' is the root." } }),
    read_only: true,
  },
  read_file: {
    description: `Read a text file that this conversation keeps ${ORIGIN_MARK}.`,
    schema: objectSchema(
      {
        path: pathSchema,
        offset: { type: "integer", minimum: 1, description: "The first line to read; 1 if left out." },
        limit: { type: "integer", minimum: 1, maximum: 10_000, description: "How many lines; 2000 if left out." },
      },
      "path",
    ),
    read_only: true,
  },
  write_file: {
    description: `Write a text file that this conversation keeps ${ORIGIN_MARK}; what was there before is gone.`,
    schema: objectSchema({ path: pathSchema, content: { type: "string", maxLength: 1_000_000 } }, "path", "content"),
    idempotent: true,
  },
};
const LEASE = 15; // seconds until another tab may take over from a closed one

const policyOf = (tool: BrowserTool): Policy => settings.value.browserTools[tool.name] ?? tool.defaultPolicy;

/** The tools declared with a message. `taken` are names of the agent's own tools; ours are then called `browser_…`. */
export function clientTools(taken: ReadonlySet<string>): ClientTool[] {
  const declared: ClientTool[] = [];
  for (const tool of BROWSER_TOOLS) {
    const approval = policyOf(tool);
    const name = taken.has(tool.name) ? `browser_${tool.name}` : tool.name;
    if (approval !== "off" && !taken.has(name)) declared.push({ name, ...DECLARATIONS[tool.name], approval, lease: LEASE });
  }
  return declared;
}

/** The browser tool that a turn means by a name: declared by its sender as ours, and not off here. */
export function browserToolFor(turn: TurnState, name: string): ToolName | null {
  const declared = turn.options.clients?.find((candidate) => candidate.name === name);
  const tool = BROWSER_TOOLS.find((candidate) => candidate.name === name || `browser_${candidate.name}` === name);
  if (!tool || !declared?.description.includes(ORIGIN_MARK) || policyOf(tool) === "off") return null;
  const user = me.value;
  const isMine = !turn.options.by || (user !== null && user !== "anonymous" && user.user === turn.options.by);
  return isMine ? tool.name : null; // another user's files are in that user's browser
}

/** The calls of a session that this browser can run. */
export function waitingCalls(session: SessionFollower): GateState[] {
  const turns = [...session.state.turns.values()].filter((turn) => !isOver(turn));
  return turns.flatMap((turn) => openGates(turn).filter(({ gate }) => gate.kind === "client" && browserToolFor(turn, gate.tool)));
}

/** Delete the files of a conversation in this browser. */
export async function deleteFiles(session: string): Promise<void> {
  await (await (await import("./files")).openFiles(session)).clear();
}
