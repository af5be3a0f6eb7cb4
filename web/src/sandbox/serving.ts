/**
 * Calls that wait for a browser → claimed, done once, answered. Every tab that shows the session may claim; the first one
 * has it, and renews its claim while it works. A claim that was lost is not worked on, and a result is never made twice:
 * where the server does not answer, the same one is brought again.
 */
import { ServerError, isOver, openGates, type Claimed, type Gate, type SessionFollower } from "@everturn/client";
import { inbox } from "../app/app";
import { perform, timeOf, type Done } from "./calls";
import type { Files } from "./files";
import { toolOf, waiting, type ToolName } from "./tools";

const AT_ONCE = 3;
const SPARE = 10; // seconds that a claim holds beyond what the call may take
const PATIENCE = 5000; // milliseconds until a call is looked at again that another client has
const LONGEST_WAIT = 15_000;

interface Wanted {
  readonly gate: Gate;
  readonly tool: ToolName;
  readonly claim: Claimed | null;
}

/** Serve a session until `over`; the answer looks whether there is something to do. What was begun is brought to its end. */
export function serve(session: SessionFollower, over: AbortSignal): () => void {
  const begun = new Map<string, AbortController>(); // gates, for as long as they stand open
  const again = new Map<string, ReturnType<typeof setTimeout>>();
  let files: Promise<Files> | null = null;
  let busy = 0;

  function look(): void {
    for (const [id, stop] of begun) if (isClosed(session, id)) stop.abort();
    if (over.aborted) return;
    for (const one of here(session)) void take(one);
    void below(session).then((found) => { if (!over.aborted) for (const one of found) void take(one); }, () => {});
  }

  function later(id: string, milliseconds: number): void {
    if (again.has(id) || over.aborted) return;
    again.set(id, setTimeout(() => { again.delete(id); look(); }, milliseconds));
  }

  async function take({ gate, tool, claim }: Wanted): Promise<void> {
    if (begun.has(gate.id) || again.has(gate.id) || busy >= AT_ONCE) return;
    if (claim && gate.once) return; // somebody has begun it, and nobody may follow
    const held = claim ? claim.until * 1000 - Date.now() : 0;
    if (held > 0) return later(gate.id, Math.min(held, 60_000) + Math.random() * 500);
    const stop = new AbortController();
    begun.set(gate.id, stop);
    busy += 1;
    try {
      files ??= import("./files").then(({ filesOf }) => filesOf(session.id));
      if (!(await work(session, gate, tool, files, stop))) {
        begun.delete(gate.id);
        later(gate.id, PATIENCE);
      }
    } finally {
      busy -= 1;
      look();
    }
  }

  const stopInbox = inbox.subscribe("gates", look);
  over.addEventListener("abort", () => {
    stopInbox();
    for (const timer of again.values()) clearTimeout(timer);
  });
  look();
  return look;
}

/** Claim, do, answer. False: it is not ours now, and may be later. */
async function work(session: SessionFollower, gate: Gate, tool: ToolName, files: Promise<Files>, stop: AbortController): Promise<boolean> {
  const { client, id } = session;
  const lease = Math.min(timeOf(tool, gate) / 1000 + SPARE, 3600);
  const claim = { hash: gate.hash, claim: secret(), lease };
  try {
    await client.claim(id, gate.id, claim);
  } catch (error) {
    const isFinal = error instanceof ServerError && !error.isAway && error.code !== "claimed_otherwise";
    return isFinal; // closed, answered, or not for us: there is nothing to wait for
  }
  const renewing = setInterval(() => {
    client.claim(id, gate.id, claim).catch((error: unknown) => {
      if (error instanceof ServerError && !error.isAway) stop.abort();
    });
  }, (lease / 3) * 1000);
  try {
    const done = await files.then(
      (ours) => perform(tool, gate, ours, stop.signal),
      (error: unknown): Done => ({ failed: true, text: `this browser keeps no files: ${String(error)}` }),
    );
    if (!stop.signal.aborted) await bring(session, gate, claim, done, stop.signal);
  } finally {
    clearInterval(renewing);
  }
  return true;
}

/** Bring a result until it is taken, or nobody wants it any more. */
async function bring(session: SessionFollower, gate: Gate, claim: { hash: string; claim: string; lease: number }, done: Done, stop: AbortSignal): Promise<void> {
  const { client, id } = session;
  let { failed, text: result } = done;
  for (let wait = 500; !stop.aborted; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    try {
      return await client.answer(id, gate.id, { hash: gate.hash, result, failed, claim: claim.claim });
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      if (error.code === "not_claimed") {
        // Our time ran out while nobody answered. If no other client has begun it, it is ours again.
        const refused = await client.claim(id, gate.id, claim).then(() => null, (why: unknown) => why);
        if (refused instanceof ServerError && !refused.isAway) return;
      } else if (error.code === "answer_unfit" && !failed) {
        [failed, result] = [true, `the result does not fit: ${error.message}`];
        continue;
      } else if (!error.isAway) return;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

function here(session: SessionFollower): Wanted[] {
  return waiting(session).map(({ gate, claim }) => {
    const turn = session.state.turns.get(gate.turn)!;
    return { gate, claim, tool: toolOf(turn, gate.tool)! };
  });
}

/** The same of sub-turns. They have the tools of the turn that began them, and are sessions of their own. */
async function below(session: SessionFollower): Promise<Wanted[]> {
  const turns = [...session.state.turns.values()].filter((turn) => !isOver(turn));
  const tool = (gate: Gate) => turns.map((turn) => toolOf(turn, gate.tool)).find((found) => found !== null);
  const isLike = (where: string, gate: Gate) => gate.kind === "client" && where !== session.id && tool(gate) !== undefined;
  if (!inbox.gates.some((one) => isLike(one.session, one.gate))) return [];
  const { gates } = await session.client.gates(session.id);
  return gates.filter((one) => isLike(one.session, one.gate)).map(({ gate, claim }) => ({ gate, claim, tool: tool(gate)! }));
}

/** Whether a gate of this session is open no more. Of one below only its turn knows. */
function isClosed(session: SessionFollower, gate: string): boolean {
  const turn = session.state.turns.get(session.state.gates.get(gate) ?? "");
  return turn !== undefined && !openGates(turn).some((one) => one.gate.id === gate);
}

/** A name for a claim that nobody can guess: 32 random bytes. */
function secret(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
