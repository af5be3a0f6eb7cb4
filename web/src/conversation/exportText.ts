/** Export of a conversation as the user sees it: Markdown to read, JSON for programs. */
import type { Message, RatingView, TextPart } from "@everturn/client";
import { client } from "../app/app";
import { fileName, saveFile } from "../pages/sessions";
import { numberSources } from "./providerTool";

/** Let the browser save the selected branch of a session, from its first message on. */
export async function saveConversation(session: string, title: string, kind: "markdown" | "json"): Promise<void> {
  const { messages, ratings } = await client.allMessages(session);
  const [text, ending, type] = kind === "markdown"
    ? [toMarkdown(title, messages, ratings), "md", "text/markdown"]
    : [`${JSON.stringify({ session, title, messages, ratings }, null, 2)}\n`, "json", "application/json"];
  saveFile(new Blob([text], { type }), `${fileName(title) || "conversation"}.${ending}`);
}

/** A conversation as Markdown: what was said, and the calls with their results, folded. */
export function toMarkdown(title: string, messages: readonly Message[], ratings: readonly RatingView[] = []): string {
  const parts = [`# ${title}`];
  for (const message of messages) {
    if (message.hidden || (message.role !== "user" && message.role !== "assistant")) continue;
    parts.push(message.role === "user" ? "## You" : `## ${message.by || "Assistant"}`);
    for (const part of message.parts ?? []) {
      if (part.type === "text" && part.text.trim()) parts.push(withSources(part));
      else if (part.type === "tool") parts.push(fold(`${part.name} ${JSON.stringify(part.arguments ?? {})}`.slice(0, 200), part.output?.text ?? ""));
      else if (part.type === "context") parts.push(fold(part.title ?? "", part.text ?? ""));
      else if (part.type === "file") parts.push(`(${part.name || part.media_type})`);
    }
    for (const { by, rating, reason } of ratings.filter((each) => each.message === message.id)) parts.push(fold(`Rated ${rating} by ${by}`, reason));
  }
  return `${parts.join("\n\n")}\n`;
}

/** A text with the numbers of its sources, and the sources under it. */
function withSources(part: TextPart): string {
  const { text, sources } = numberSources(part);
  return [text.trim(), ...sources.map(({ title, source }, at) => `[${at + 1}] ${`${title} ${source}`.trim().replaceAll(/\s+/g, " ")}`)].join("\n\n");
}

/** A text that is shown on demand. Its fence is longer than any in the text. */
function fold(title: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const summary = title.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\n", " ");
  return `<details><summary>${summary}</summary>\n\n${fence}\n${text}\n${fence}\n\n</details>`;
}
