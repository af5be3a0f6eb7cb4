/** Which key means what at a gate that has the focus. Pure. */

export type GateAction = "once" | "always" | "deny" | "edit";

export interface Pressed {
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

/** What a key asks for; null: nothing. `isTyping`: it goes into a field. */
export function actionOf(pressed: Pressed, isTyping: boolean, can: ReadonlySet<GateAction>): GateAction | null {
  const isOther = pressed.ctrlKey || pressed.altKey || pressed.metaKey || pressed.shiftKey;
  if (isTyping || isOther || pressed.repeat || pressed.isComposing || pressed.defaultPrevented) return null;
  const action = KEYS[pressed.key];
  return action && can.has(action) ? action : null;
}

/** Whether what has the focus takes letters. */
export function isTypingIn(target: EventTarget | null): boolean {
  const element = target as { tagName?: string; isContentEditable?: boolean; type?: string } | null;
  if (!element?.tagName) return false;
  if (element.isContentEditable) return true;
  const tag = element.tagName.toUpperCase();
  return tag === "TEXTAREA" || tag === "SELECT" || (tag === "INPUT" && element.type !== "checkbox" && element.type !== "radio");
}

/** Where `j` and `k` lead in a list of so many. */
export function stepTo(key: string, at: number, count: number): number | null {
  if (!count) return null;
  if (key === "j") return Math.min(at + 1, count - 1);
  if (key === "k") return Math.max(at - 1, 0);
  return null;
}
