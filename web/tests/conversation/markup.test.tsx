// @vitest-environment happy-dom
import { render } from "preact";
import { expect, it } from "vitest";
import { mathml } from "../../src/conversation/formula";
import { highlight } from "../../src/conversation/highlight";
import { parseMarkup } from "../../src/conversation/markup";

function drawn(markup: string): HTMLElement {
  const root = document.createElement("div");
  render(<>{parseMarkup(markup)}</>, root);
  return root;
}

it("colours keep every character of the code", async () => {
  const code = 'const a = "<b>&amp;</b>"; // `x` \'y\' <script>alert(1)</script>\n';
  const root = drawn((await highlight(code, "js"))!);
  expect(root.textContent).toBe(code);
  expect(root.querySelector(".hljs-keyword")?.textContent).toBe("const");
  expect(root.querySelector("script, b")).toBeNull();
});

it("a language that nobody knows has no colours", async () => {
  expect(await highlight("x", "brainfog")).toBeNull();
  expect(await highlight("x", "__proto__")).toBeNull();
  expect(await highlight("x", "constructor")).toBeNull();
});

it("a formula is MathML, in its namespace", () => {
  const root = drawn(mathml("\\frac{a}{b}", true));
  expect(root.querySelector("mfrac")).not.toBeNull();
  expect(root.querySelector("math")?.namespaceURI).toBe("http://www.w3.org/1998/Math/MathML");
});

it.each([
  "\\href{javascript:alert(1)}{x}", "\\url{https://x.example}", "\\includegraphics{https://x.example/a.png}", "\\htmlClass{x}{y}",
  "\\htmlStyle{color:red}{y}", "\\fcolorbox{red}{blue}{x}", "\\text{<img src=x onerror=alert(1)>}", "\\unicode{x}", "\\def\\a{\\a\\a}\\a", "\\rule{1e9em}{1e9em}",
])("a formula brings nothing else with it: %s", (formula) => {
  const root = drawn(mathml(formula, false));
  for (const element of root.querySelectorAll("*")) {
    expect(["href", "src", "style", "id", "onclick"].filter((name) => element.hasAttribute(name))).toEqual([]);
  }
  expect(root.querySelector("a, img, script")).toBeNull();
});

it("what is no markup of theirs becomes text, or nothing", () => {
  const root = drawn('<span class="a" onclick="x()" style="y">1<img src="x"/><script>2</script></span> < 3 &lt;b&gt;');
  expect(root.querySelector("img, script")).toBeNull();
  expect(root.querySelector("span")?.getAttributeNames()).toEqual(["class"]);
  expect(root.textContent).toBe("12 < 3 <b>");
});
