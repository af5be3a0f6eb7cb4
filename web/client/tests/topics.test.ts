import { expect, test } from "vitest";
import { Topics } from "../src/topics";

test("a scheduler that refuses another `this`, as requestAnimationFrame does in a browser, is called", () => {
  const scheduled: (() => void)[] = [];
  function requestFrame(this: unknown, run: () => void) {
    if (this !== undefined) throw new TypeError("Illegal invocation");
    scheduled.push(run);
  }
  let told = 0;
  const topics = new Topics(requestFrame);
  topics.subscribe("tree", () => told++);
  topics.touch("tree");
  scheduled.forEach((run) => run());
  expect(told).toBe(1);
});
