/**
 * Client tool runner: claims the calls of browser tools, runs each once, and answers. Every tab that shows the session may
 * claim a call; the first one has it, and renews its claim while it works. A lost claim is not worked on, and a call never runs
 * twice: while the server is unreachable, the same result is sent again.
 */
import { ServerError, isOver, openGates, type CallClaim, type Gate, type SessionFollower } from "@everturn/client";
import { inbox } from "../app/app";
import { runTool, timeoutFor, type ToolResult } from "./calls";
import type { Files } from "./files";
import type { ToolName } from "./toolName";
import { browserToolFor, waitingCalls } from "./tools";

const MAX_CONCURRENT = 3;
const LEASE_MARGIN = 10; // seconds that a claim lasts beyond the timeout of the call
const RETRY_DELAY = 5000; // milliseconds until a call that another client has is checked again
const MAX_BACKOFF = 15_000;

interface PendingCall {
  readonly gate: Gate;
  readonly tool: ToolName;
  readonly claim: CallClaim | null;
}

/** Run the calls of a session until `stopSignal`; returns a function that checks for calls. Running calls are finished. */
export function runClientTools(session: SessionFollower, stopSignal: AbortSignal): () => void {
  const running = new Map<string, AbortController>(); // by gate, while it is open
  const retryTimers = new Map<string, ReturnType<typeof setTimeout>>();
  let files: Promise<Files> | null = null;
  let busy = 0;

  function checkCalls(): void {
    for (const [id, stop] of running) if (isClosed(session, id)) stop.abort();
    if (stopSignal.aborted) return;
    for (const call of ownCalls(session)) void runCall(call);
    void subagentCalls(session).then((found) => { if (!stopSignal.aborted) for (const call of found) void runCall(call); }, () => {});
  }

  function retryLater(id: string, milliseconds: number): void {
    if (retryTimers.has(id) || stopSignal.aborted) return;
    retryTimers.set(id, setTimeout(() => { retryTimers.delete(id); checkCalls(); }, milliseconds));
  }

  async function runCall({ gate, tool, claim }: PendingCall): Promise<void> {
    if (running.has(gate.id) || retryTimers.has(gate.id) || busy >= MAX_CONCURRENT) return;
    if (claim && gate.once) return; // another client has started it, and it must not run twice
    const held = claim ? claim.until * 1000 - Date.now() : 0;
    if (held > 0) return retryLater(gate.id, Math.min(held, 60_000) + Math.random() * 500);
    const stop = new AbortController();
    running.set(gate.id, stop);
    busy += 1;
    try {
      files ??= import("./files").then(({ openFiles }) => openFiles(session.id));
      if (!(await claimAndRun(session, gate, tool, files, stop))) {
        running.delete(gate.id);
        retryLater(gate.id, RETRY_DELAY);
      }
    } finally {
      busy -= 1;
      checkCalls();
    }
  }

  const stopInbox = inbox.subscribe("gates", checkCalls);
  stopSignal.addEventListener("abort", () => {
    stopInbox();
    for (const timer of retryTimers.values()) clearTimeout(timer);
  });
  checkCalls();
  return checkCalls;
}

/** Claim, run, answer. False: another client has it now; try again later. */
async function claimAndRun(session: SessionFollower, gate: Gate, tool: ToolName, files: Promise<Files>, stop: AbortController): Promise<boolean> {
  const { client, id } = session;
  const lease = Math.min(timeoutFor(tool, gate) / 1000 + LEASE_MARGIN, 3600);
  const claim = { hash: gate.hash, claim: newClaimSecret(), lease };
  try {
    await client.claim(id, gate.id, claim);
  } catch (error) {
    const isFinal = error instanceof ServerError && !error.isAway && error.code !== "claimed_otherwise";
    return isFinal; // closed, answered, or not for us: there is nothing to wait for
  }
  const renewTimer = setInterval(() => {
    client.claim(id, gate.id, claim).catch((error: unknown) => {
      if (error instanceof ServerError && !error.isAway) stop.abort();
    });
  }, (lease / 3) * 1000);
  try {
    const done = await files.then(
      (sessionFiles) => runTool(tool, gate, sessionFiles, stop.signal),
      (error: unknown): ToolResult => ({ failed: true, text: `this browser keeps no files: ${String(error)}` }),
    );
    if (!stop.signal.aborted) await deliverResult(session, gate, claim, done, stop.signal);
  } finally {
    clearInterval(renewTimer);
  }
  return true;
}

/** Send a result until it is accepted, or not wanted any more. */
async function deliverResult(session: SessionFollower, gate: Gate, claim: { hash: string; claim: string; lease: number }, done: ToolResult, stop: AbortSignal): Promise<void> {
  const { client, id } = session;
  let { failed, text: result } = done;
  for (let wait = 500; !stop.aborted; wait = Math.min(wait * 2, MAX_BACKOFF)) {
    try {
      return await client.answer(id, gate.id, { hash: gate.hash, result, failed, claim: claim.claim });
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      if (error.code === "not_claimed") {
        // The claim expired while the server was unreachable. If no other client has started it, claim it again.
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

function ownCalls(session: SessionFollower): PendingCall[] {
  return waitingCalls(session).map(({ gate, claim }) => {
    const turn = session.state.turns.get(gate.turn)!;
    return { gate, claim, tool: browserToolFor(turn, gate.tool)! };
  });
}

/** The calls of sub-agent runs. They have the tools of the parent turn, and are sessions of their own. */
async function subagentCalls(session: SessionFollower): Promise<PendingCall[]> {
  const turns = [...session.state.turns.values()].filter((turn) => !isOver(turn));
  const tool = (gate: Gate) => turns.map((turn) => browserToolFor(turn, gate.tool)).find((found) => found !== null);
  const isLike = (where: string, gate: Gate) => gate.kind === "client" && where !== session.id && tool(gate) !== undefined;
  if (!inbox.gates.some((gateView) => isLike(gateView.session, gateView.gate))) return [];
  const { gates } = await session.client.gates(session.id);
  return gates.filter((gateView) => isLike(gateView.session, gateView.gate)).map(({ gate, claim }) => ({ gate, claim, tool: tool(gate)! }));
}

/** Whether a gate of this session is closed. Of a sub-agent's gate only its own session knows. */
function isClosed(session: SessionFollower, gate: string): boolean {
  const turn = session.state.turns.get(session.state.gates.get(gate) ?? "");
  return turn !== undefined && !openGates(turn).some((gateState) => gateState.gate.id === gate);
}

/** An unguessable claim id: 32 random bytes. */
function newClaimSecret(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
