/** What was typed and not sent, or sent and not answered yet: it outlives a reload of the page, and no more than its tab. */
import type { FileView } from "@everturn/client";

/** A message on its way. The same key again is the same message, so it can be tried until somebody answers. */
export interface Pending {
  readonly key: string;
  readonly text: string;
  readonly files: readonly FileView[];
  readonly busy: "queue" | "steer";
}

export interface Draft {
  readonly text: string;
  readonly files: readonly FileView[];
  readonly pending?: Pending;
}

const name = (session: string) => `everturn.draft.${session || "new"}`;
const EMPTY: Draft = { text: "", files: [] };

export function readDraft(session: string): Draft {
  try {
    return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(name(session)) ?? "{}") as Partial<Draft>) };
  } catch {
    return EMPTY;
  }
}

export function keepDraft(session: string, draft: Draft): void {
  try {
    if (!draft.text && !draft.files.length && !draft.pending) sessionStorage.removeItem(name(session));
    else sessionStorage.setItem(name(session), JSON.stringify(draft));
  } catch {
    // Too long, or a window that keeps nothing: it is still in the box.
  }
}
