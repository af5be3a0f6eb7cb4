/** Keyboard focus among the gates of a page. */

/** Cards and rows that wait for an answer. A row that is open has its card after it. */
export const OPEN_GATES = ".gate[data-open], .gate-row:not(:has([aria-expanded=true]))";

/** Focus a gate only if nothing else has the focus, so that typing is not interrupted. */
export function focusIfIdle(card: HTMLElement | null): void {
  const element = document.activeElement;
  if (card && (!element || element === document.body || element.id === "main")) card.focus({ preventScroll: true });
}

/** After an answer, focus the next gate, if there is one. */
export function focusNextGate(from: HTMLElement | null): void {
  if (!from?.contains(document.activeElement) && document.activeElement !== document.body) return;
  const all = [...document.querySelectorAll<HTMLElement>(OPEN_GATES)];
  const next = all[all.indexOf(from!) + 1] ?? all.find((element) => element !== from);
  (next ?? document.getElementById("main"))?.focus();
}
