/** Text search in the messages of one conversation. */
import type { Message } from "@everturn/client";

/** Ids of the messages that contain a text, oldest first. Case and accents do not matter; hidden messages are left out. */
export function findMessages(messages: readonly Message[], query: string): string[] {
  const wanted = fold(query.trim());
  if (!wanted) return [];
  return messages.filter((message) => !message.hidden && texts(message).some((text) => fold(text).includes(wanted))).map(({ id }) => id);
}

/** What a reader of the transcript sees of a message. */
function texts(message: Message): string[] {
  return (message.parts ?? []).flatMap((part) => {
    if (part.type === "text") return [part.text];
    if (part.type === "tool") return [part.name, JSON.stringify(part.arguments ?? {}), part.output?.text ?? ""];
    if (part.type === "context") return [part.title ?? "", part.text ?? ""];
    return part.type === "file" ? [part.name ?? ""] : [];
  });
}

/** Ranges of a text in what is rendered below an element. */
export function findRanges(root: Element, query: string): Range[] {
  const wanted = query.trim().toLowerCase();
  const ranges: Range[] = [];
  if (!wanted) return ranges;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = (node.textContent ?? "").toLowerCase();
    if (text.length !== node.textContent!.length) continue; // a few letters change their length: the offsets would be wrong
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}

const fold = (text: string) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
