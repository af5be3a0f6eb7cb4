import { describe, expect, it } from "vitest";
import { diff, type Change } from "../../src/tree/diff";

const side = (changes: Change[], but: Change["kind"]) => changes.filter((change) => change.kind !== but).map((change) => change.text).join("");
const brief = (changes: Change[]) => changes.map(({ kind, text }) => ({ same: "=", added: "+", removed: "-" })[kind] + text).join("|");

describe("diff", () => {
  it("gives both texts back, whatever they are", () => {
    let seed = 7;
    const random = (limit: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % limit;
    const text = () => Array.from({ length: random(30) }, () => ["a", "b", "c ", " ", "\n", "天", "气", "."][random(8)]).join("");
    for (let round = 0; round < 500; round += 1) {
      const [left, right] = [text(), text()];
      const changes = diff(left, right);
      expect(side(changes, "added")).toBe(left);
      expect(side(changes, "removed")).toBe(right);
    }
  });

  it("keeps what is the same", () => {
    expect(brief(diff("the quick fox", "the slow fox"))).toBe("=the |-quick|+slow|= fox");
    expect(brief(diff("a b c", "a b c"))).toBe("=a b c");
    expect(brief(diff("", "new"))).toBe("+new");
    expect(brief(diff("old", ""))).toBe("-old");
  });

  it("is as short as it can be", () => {
    const changes = diff("a b c a b b a", "c b a b a c");
    const moved = changes.filter((change) => change.kind !== "same").map((change) => change.text.replace(/\s/g, "").length);
    expect(moved.reduce((a, b) => a + b, 0)).toBe(5);
  });

  it("takes Chinese character by character", () => {
    expect(brief(diff("今天天气很好", "今天天气不好"))).toBe("=今天天气|-很|+不|=好");
  });

  it("goes by lines when there are too many words, and gives up on texts that have nothing in common", () => {
    const lines = Array.from({ length: 4000 }, (_, index) => `line ${index} with some words in it`);
    const changed = lines.with(10, "another one").with(3990, "and another");
    const changes = diff(lines.join("\n"), changed.join("\n"));
    expect(changes.filter((change) => change.kind === "added").map((change) => change.text)).toEqual(["another one\n", "and another\n"]);
    const mess = diff(lines.join("\n"), lines.map((line) => `x${line}`).reverse().join("\n"));
    expect(mess.map((change) => change.kind)).toEqual(["removed", "added"]);
  });
});
