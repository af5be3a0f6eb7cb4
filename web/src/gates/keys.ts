/** Keyboard shortcuts of a gate that has the focus. Pure. */

export type GateAction = "once" | "always" | "deny" | "edit";

export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey?: boolean;
  readonly repeat: boolean;
  readonly isComposing: boolean;
  readonly defaultPrevented?: boolean;
}

const KEYS: Readonly<Record<string, GateAction>> = { y: "once", a: "always", n: "deny", e: "edit" };

/** The action for a key; null: none. `isTyping`: the key goes into a field. */
export function actionForKey(pressed: KeyPress, isTyping: boolean, can: ReadonlySet<GateAction>): GateAction | null {
  const isOther = pressed.ctrlKey || pressed.altKey || pressed.metaKey || pressed.shiftKey;
  if (isTyping || isOther || pressed.repeat || pressed.isComposing || pressed.defaultPrevented) return null;
  const action = KEYS[pressed.key];
  return action && can.has(action) ? action : null;
}

/** Whether the focused element takes text. */
export function isTypingIn(target: EventTarget | null): boolean {
  const element = target as { tagName?: string; isContentEditable?: boolean; type?: string } | null;
  if (!element?.tagName) return false;
  if (element.isContentEditable) return true;
  const tag = element.tagName.toUpperCase();
  return tag === "TEXTAREA" || tag === "SELECT" || (tag === "INPUT" && element.type !== "checkbox" && element.type !== "radio");
}

/** The index after `j` or `k`. */
export function nextIndex(key: string, index: number, count: number): number | null {
  if (!count) return null;
  if (key === "j") return Math.min(index + 1, count - 1);
  if (key === "k") return Math.max(index - 1, 0);
  return null;
}
