// @vitest-environment happy-dom
import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, expect, it } from "vitest";
import { Markdown } from "../../src/conversation/markdown";

let root: HTMLElement;

beforeEach(() => {
  document.body.replaceChildren((root = document.createElement("div")));
});

const draw = (text: string, isLive = false) => act(() => render(<Markdown text={text} isLive={isLive} />, root));

it("draws what markdown means", () => {
  draw("# T\n\nOne **two** `three`\n\n- [x] a\n- b\n  1. c\n\n> q\n\n| a | b |\n|--|--:|\n| 1 | 2 |\n");
  expect(root.querySelector("h3")?.textContent).toBe("T");
  expect(root.querySelector("strong")?.textContent).toBe("two");
  expect(root.querySelector("li.task input")?.hasAttribute("checked") || root.querySelector<HTMLInputElement>("li.task input")?.checked).toBe(true);
  expect(root.querySelector("ul ol li")?.textContent).toBe("c");
  expect(root.querySelector("blockquote p")?.textContent).toBe("q");
  expect(root.querySelector("td.right")?.textContent).toBe("2");
});

it.each([
  "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>",
  "text <svg onload=alert(1)> text",
  "<iframe src=//x.example></iframe>",
  "<style>*{}</style>",
  "- <object data=x>\n- <embed src=x>",
  "| <img src=x> |\n|--|\n| <a href='javascript:1'>x</a> |",
  "> <form action=//x.example><input>",
])("shows HTML as text: %s", (text) => {
  draw(text);
  expect(root.querySelector("img, script, svg:not(.icon-svg), iframe, style, object, embed, form")).toBeNull();
  expect(root.textContent).toContain("<");
});

it.each(["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//x.example/y", "/api/logout", "#/s/1", "java&#115;cript:alert(1)", "blob:x"])(
  "makes no link of %s",
  (href) => {
    draw(`[text](${href}) and ![pic](${href})`);
    expect(root.querySelector("a")).toBeNull();
    expect(root.textContent).toContain("text");
  },
);

it("says where a link leads when its text says otherwise", () => {
  draw("[https://bank.example/login](https://evil.example) and [here](https://good.example) and [www.good.example](https://good.example/x)");
  const [evil, here] = [...root.querySelectorAll("a")];
  expect(evil!.rel).toBe("noopener noreferrer nofollow");
  expect(evil!.target).toBe("_blank");
  expect(evil!.nextElementSibling?.textContent).toContain("evil.example");
  expect(here!.title).toBe("https://good.example/");
  expect(root.querySelectorAll(".host").length).toBe(1);
});

it("fetches no picture", () => {
  draw("![a cat](https://x.example/cat.png)");
  expect(root.querySelector("img")).toBeNull();
  expect(root.querySelector("a.picture")?.textContent).toContain("x.example");
});

it("reads entities once, and shows what a terminal would obey", () => {
  draw("a &amp;lt; b &copy; &#0; &nosuch;\u001b[31m");
  expect(root.textContent).toBe("a &lt; b © \ufffd &nosuch;\u241b[31m");
});

it("tells money from formulas", () => {
  draw("It costs $5 and $6, or `$x$`, but $y$ is one.");
  expect([...root.querySelectorAll(".formula")].map((element) => element.textContent)).toHaveLength(1);
});

it("keeps the nodes of finished blocks while the text grows, and those of an open block of code", () => {
  draw("one\n\ntwo\n\n```js\nlet", true);
  const [first, code] = [root.querySelector("p"), root.querySelector("figure")];
  draw("one\n\ntwo\n\n```js\nlet x = 1;\n", true);
  expect(root.querySelector("code")?.textContent).toBe("let x = 1;\n");
  draw("one\n\ntwo\n\n```js\nlet x = 1;\n```\n\nend", false);
  expect(root.querySelector("p")).toBe(first);
  expect(root.querySelector("figure")).toBe(code);
  expect(root.querySelector("code")?.textContent).toBe("let x = 1;");
});

it("draws what is too deep or too long as it was written", () => {
  const deep = "> ".repeat(10_000) + "x";
  draw(deep);
  expect(root.querySelector("pre.plain")?.textContent).toBe(deep);
  draw("[".repeat(100_000));
  expect(root.querySelector("pre.plain")?.textContent?.length).toBe(100_000);
  draw("| a |\n|--|\n" + "| 1 |\n".repeat(2000));
  expect(root.querySelectorAll("tr").length).toBeLessThan(500);
});

it("collapses a long code block, and no short one", () => {
  const code = (lines: number) => `\`\`\`python\n${"x = 1\n".repeat(lines)}\`\`\`\n`;
  draw(code(15));
  expect(root.querySelector("[aria-expanded]")).toBeNull();
  draw(code(40));
  const button = root.querySelector<HTMLButtonElement>("button[aria-expanded=true]")!;
  act(() => button.click());
  expect(root.querySelector("pre")).toBeNull();
  expect(root.querySelector("figcaption")?.textContent).toContain("python · 40 lines");
  act(() => button.click());
  expect(root.querySelector("pre")?.textContent).toBe("x = 1\n".repeat(40).trimEnd());
});
