/** A program of a project that has installed the package: one turn, with its types. `tests/web/test_packed_client.py` runs it. */
import { Everturn, SessionFollower, isOver, openGates, path, textOf, type MessageReceipt } from "@everturn/client";

declare const process: { argv: string[] };
const [url, token] = process.argv.slice(2);
const server = new Everturn({ base: url!, token: token! });

// @ts-expect-error a text is not a number: the types of the package are in use
export const wrong = () => server.startSession({ text: 1 });

const sent: MessageReceipt = await server.startSession({ text: "Note that lunch is at noon" });
const session = new SessionFollower(server, sent.session);
await new Promise<void>((resolve) => {
  const asked = new Set<string>();
  session.subscribe(`turn:${sent.turn}`, () => {
    const turn = session.state.turns.get(sent.turn);
    if (!turn) return;
    for (const { gate } of openGates(turn)) {
      if (asked.has(gate.id)) continue;
      asked.add(gate.id);
      void server.answer(sent.session, gate.id, { hash: gate.hash, allow: "once" });
    }
    if (isOver(turn)) resolve();
  });
  session.start();
});
session.pause();
console.log(JSON.stringify(path(session.state).map((message) => [message.role, textOf(message.parts)])));
