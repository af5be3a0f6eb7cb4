import { describe, expect, it } from "vitest";
import { emptySession, type Message, type SessionState } from "@everturn/client";
import { alignMessages, visibleVersions, countDescendants, leafThrough, newestLeaf, compareBranches } from "../../src/tree/branches";
import { usageOf } from "../../src/tree/totals";

/** "a<-root b<-a": messages and their parents, in order; an upper-case letter is a user message, "!" hides it. */
function tree(text: string, leaf: string): SessionState {
  const state = emptySession();
  for (const word of text.split(" ")) {
    const [id, parentId] = word.replace("!", "").split("<-") as [string, string];
    const parent = parentId === "root" ? null : parentId;
    const role = id.startsWith("n") ? "notice" : /^[A-Z]/.test(id) ? "user" : "assistant";
    state.messages.set(id, { id, parent, role, hidden: word.endsWith("!") } satisfies Message);
    state.children.set(parent, [...(state.children.get(parent) ?? []), id]);
  }
  state.leaf = leaf;
  return state;
}

const story = () => tree("A<-root b<-A C<-b d<-C C2<-b d2<-C2 d3<-C2 E<-d3", "d");
const ids = (messages: readonly (Message | null)[]) => messages.map((message) => message?.id ?? "-").join(" ");

describe("branches", () => {
  it("lead to the newest leaf under a version", () => {
    const state = story();
    expect(newestLeaf(state, "C2")).toBe("E");
    expect(newestLeaf(state, "d2")).toBe("d2");
    state.deleted.add("E").add("d3");
    expect(newestLeaf(state, "C2")).toBe("d2");
  });

  it("offer the versions that are there and shown", () => {
    const state = tree("A<-root b<-A b2<-A x<-A! b3<-A", "b3");
    state.deleted.add("b2");
    expect(visibleVersions(state, state.messages.get("b")!)).toEqual(["b", "b3"]);
  });

  it("go through a message to the selected leaf, or to its newest", () => {
    expect(leafThrough(story(), "C")).toBe("d");
    expect(leafThrough(story(), "b")).toBe("d");
    expect(leafThrough(story(), "C2")).toBe("E");
  });

  it("say how much goes along with a message", () => {
    const state = story();
    expect(countDescendants(state, "b")).toBe(6);
    expect(countDescendants(state, "E")).toBe(0);
    state.deleted.add("E");
    expect(countDescendants(state, "C2")).toBe(2);
  });

  it("part where they differ", () => {
    const { common, left, right } = compareBranches(story(), "d", "E");
    expect([ids(common), ids(left), ids(right)]).toEqual(["A b", "C d", "C2 d3 E"]);
    expect(compareBranches(story(), "d", "d").left).toEqual([]);
    expect(ids(compareBranches(story(), "b", "E").right)).toBe("C2 d3 E");
  });

  it("stand side by side, with a notice on a line of its own", () => {
    const state = tree("A<-root n1<-A b<-n1 C<-b B<-root c<-B D<-c e<-D", "C");
    const rows = alignMessages(compareBranches(state, "C", "e").left, compareBranches(state, "C", "e").right);
    expect(rows.map(ids)).toEqual(["A B", "n1 -", "b c", "C D", "- e"]);
  });
});

describe("totals", () => {
  it("sum the steps, and know no cost where none is known", () => {
    const step = (input: number, cost?: number) => ({ type: "step" as const, step: 1, finish: "stop" as const, usage: { input, output: 1, cost } });
    const message = (...parts: ReturnType<typeof step>[]) => ({ id: "a", parent: null, role: "assistant" as const, parts });
    expect(usageOf([message(step(10, 0.5), step(5)), message(step(1, 0.25))])).toEqual({ input: 16, output: 3, cost: 0.75 });
    expect(usageOf([message(step(10))]).cost).toBeNull();
  });
});
