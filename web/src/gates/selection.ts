/** DOM selection to offsets in a text: elements have their offset in `data-at`. */
import type { Cut } from "./redaction";

/** Offset in the text of one end of a selection; null: outside of the text. */
function textOffset(root: HTMLElement, node: Node, offset: number, isEnd: boolean): number | null {
  if (!root.contains(node)) return null;
  if (node.nodeType === Node.TEXT_NODE) {
    const piece = node.parentElement?.closest<HTMLElement>("[data-at]");
    if (!piece || !root.contains(piece)) return null;
    const start = Number(piece.dataset["at"]);
    // An escaped character is one character, whatever part of its code was selected.
    if (piece.dataset["size"]) return isEnd && offset > 0 ? start + Number(piece.dataset["size"]) : start;
    return start + offset;
  }
  const pieces = [...root.querySelectorAll<HTMLElement>("[data-at]")];
  const child = node.childNodes[offset] ?? null;
  // Before this child: the first piece that does not come before it.
  const next = pieces.find((piece) => (child ? piece === child || child.contains(piece) || Boolean(child.compareDocumentPosition(piece) & Node.DOCUMENT_POSITION_FOLLOWING) : Boolean(node.compareDocumentPosition(piece) & Node.DOCUMENT_POSITION_FOLLOWING) && !node.contains(piece)));
  if (next) return Number(next.dataset["at"]);
  const last = pieces.at(-1);
  return last ? Number(last.dataset["at"]) + (Number(last.dataset["size"]) || (last.textContent ?? "").length) : 0;
}

/** The selected range of the text in an element. */
export function selectedRange(root: HTMLElement): Cut | null {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  const from = textOffset(root, range.startContainer, range.startOffset, false);
  const to = textOffset(root, range.endContainer, range.endOffset, true);
  return from !== null && to !== null && to > from ? { from, to } : null;
}

const STEPS: Readonly<Record<string, readonly ["forward" | "backward", "character" | "line" | "lineboundary"]>> = {
  ArrowRight: ["forward", "character"], ArrowLeft: ["backward", "character"], ArrowDown: ["forward", "line"], ArrowUp: ["backward", "line"],
  End: ["forward", "lineboundary"], Home: ["backward", "lineboundary"],
};

/** Move or extend the selection by a key, as in a text field; returns whether it did. */
export function selectByKey(root: HTMLElement, event: KeyboardEvent): boolean {
  const step = STEPS[event.key];
  const selection = document.getSelection();
  if (!step || !selection || event.altKey || event.metaKey) return false;
  if (!selection.anchorNode || !root.contains(selection.anchorNode)) selection.collapse(root, 0);
  const [way, unit] = step;
  const size = event.ctrlKey && unit === "character" ? "word" : unit;
  if (event.shiftKey) selection.modify("extend", way, size);
  else {
    // One character stays selected: it serves as the cursor.
    if (way === "forward") selection.collapseToEnd();
    else selection.collapseToStart();
    if (unit !== "character" || way === "backward" || event.ctrlKey) selection.modify("move", way, size);
    selection.modify("extend", "forward", "character");
  }
  if (!root.contains(selection.focusNode)) selection.collapse(root, root.childNodes.length);
  return true;
}
