/** Drafts: messages that were typed or are being sent, stored in the tab so that they survive a reload. */
import type { FileView } from "@everturn/client";

/** A message that is being sent. The same key is the same message, so it can be retried until the server answers. */
export interface PendingMessage {
  readonly key: string;
  readonly text: string;
  readonly files: readonly FileView[];
  readonly busy: "queue" | "steer";
  /** The models that answer side by side; without them the chosen one does. */
  readonly models?: readonly string[];
  /** The conversation that it starts is temporary. */
  readonly temporary?: boolean;
}

export interface Draft {
  readonly text: string;
  readonly files: readonly FileView[];
  readonly pending?: PendingMessage;
}

const storageKey = (session: string) => `everturn.draft.${session || "new"}`;
const EMPTY: Draft = { text: "", files: [] };

export function readDraft(session: string): Draft {
  try {
    return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(storageKey(session)) ?? "{}") as Partial<Draft>) };
  } catch {
    return EMPTY;
  }
}

export function saveDraft(session: string, draft: Draft): void {
  try {
    if (!draft.text && !draft.files.length && !draft.pending) sessionStorage.removeItem(storageKey(session));
    else sessionStorage.setItem(storageKey(session), JSON.stringify(draft));
  } catch {
    // Too long, or a window without storage: it is still in the box.
  }
}
