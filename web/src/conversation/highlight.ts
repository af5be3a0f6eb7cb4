/** Syntax highlighting. Loaded when the first complete code block becomes visible, one language at a time. */
import hljs from "highlight.js/lib/core";
import type { LanguageFn } from "highlight.js";

type LoadLanguage = () => Promise<{ default: LanguageFn }>;

const LANGUAGES: Record<string, LoadLanguage> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};
const ALIASES: Record<string, string> = {
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", "c++": "cpp", cc: "cpp", h: "c", hpp: "cpp", cs: "csharp", "c#": "csharp",
  patch: "diff", docker: "dockerfile", golang: "go", toml: "ini", conf: "ini", js: "javascript", jsx: "javascript", mjs: "javascript",
  json5: "json", jsonc: "json", kt: "kotlin", md: "markdown", py: "python", python3: "python", rb: "ruby", rs: "rust", ts: "typescript",
  tsx: "typescript", html: "xml", svg: "xml", yml: "yaml",
};

/** The HTML that highlight.js makes of a code, or null for an unknown language. */
export async function highlight(code: string, language: string): Promise<string | null> {
  const lower = language.toLowerCase();
  const name = Object.hasOwn(ALIASES, lower) ? ALIASES[lower]! : lower;
  const load = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name] : undefined;
  if (!load) return null;
  if (!hljs.getLanguage(name)) hljs.registerLanguage(name, (await load()).default);
  return hljs.highlight(code, { language: name, ignoreIllegals: true }).value;
}
