// Follows turns of a real server over lines that break all the time, pausing and coming back, and compares with the log.
import { Everturn, SessionFollower, fold, isOver } from "@everturn/client";

const [url, token, rounds] = process.argv.slice(2);
let connections = 0;
let wrong = 0;

/** Cuts every stream after some bytes. */
async function breaking(input, init) {
  const answer = await fetch(input, init);
  if (!String(input).includes("/events")) return answer;
  connections += 1;
  let left = Math.floor(Math.random() ** 2 * 2500);
  const cut = new TransformStream({
    transform(chunk, out) {
      out.enqueue(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) out.error(new Error("the line went dead"));
    },
  });
  return new Response(answer.body.pipeThrough(cut), { status: answer.status, headers: answer.headers });
}

const server = new Everturn({ base: url, token, fetch: breaking });
const plain = new Everturn({ base: url, token });

async function round(number) {
  const sent = await server.startSession({ text: `Tell me, please, number ${number}: 你好 👋🏽 and more` });
  const tabs = [0, 1, 2].map(() => new SessionFollower(server, sent.session, (run) => run()));
  for (const tab of tabs) {
    const receive = tab.receive;
    tab.receive = function (message) {
      const { event } = JSON.parse(message.data);
      if (event?.type === "StepFinished") {
        const live = tab.state.turns.get(event.turn).live.map((part) => part.text);
        const whole = event.parts.map((part) => part.arguments ?? part.text);
        if (JSON.stringify(live) !== JSON.stringify(whole)) {
          wrong += 1;
          console.error("not the same:", live, whole);
        }
      }
      return receive.call(tab, message);
    };
  }
  const isDone = (tab) => tab.state.turns.has(sent.turn) && isOver(tab.state.turns.get(sent.turn));
  for (let at = 0; !tabs.every(isDone); at++) {
    const tab = tabs[at % 3]; // the third comes late, in the middle of a step
    if (at % 3 < 2 || at > 20) tab.start();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
    if (Math.random() < 0.2) tab.pause();
    if (at > 5000) throw new Error("it does not end");
  }
  for (const tab of tabs) tab.pause();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const { entries } = await plain.log(sent.session);
  const told = (state) => JSON.stringify([[...state.messages.values()], state.leaf, state.turns.get(sent.turn).usage]);
  const whole = told(fold(entries));
  for (const tab of tabs) if (told(tab.state) !== whole) wrong += 1;
}

// Two at a time: fifty requests per second are allowed, and a stream that breaks is asked for again soon.
for (let at = 0; at < Number(rounds); at += 2) await Promise.all([round(at), round(at + 1)]);
console.log(JSON.stringify({ connections, wrong }));
