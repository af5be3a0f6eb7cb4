import { Everturn, SessionFollower } from "@everturn/client";
import { isOver, openGates, path, textOf } from "@everturn/client";

const [url, token] = process.argv.slice(2);
const server = new Everturn({ base: url, token });

const sent = await server.startSession({ text: "Note that lunch is at noon" });
const session = new SessionFollower(server, sent.session);

await new Promise((resolve) => {
  const asked = new Set();
  session.subscribe(`turn:${sent.turn}`, () => {
    const turn = session.state.turns.get(sent.turn);
    for (const { gate } of openGates(turn)) {
      if (asked.has(gate.id)) continue;
      asked.add(gate.id);
      console.log(`[${gate.tool} ${gate.arguments}: allowed]`);
      void server.answer(sent.session, gate.id, { hash: gate.hash, allow: "once" });
    }
    if (isOver(turn)) resolve();
  });
  session.start();
});
session.pause();

for (const message of path(session.state)) {
  console.log(`${message.role}: ${textOf(message.parts)}`);
}
