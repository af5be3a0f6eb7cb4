/** Settings of the web UI, stored in this browser. Nothing of a conversation is stored here. */
import { Store } from "./store";
import { language, preferredLanguage, type Language } from "./texts";

export interface Settings {
  language: Language | "auto";
  theme: "auto" | "light" | "dark";
  agent: string; // "": the server's default
  model: string; // "": the agent's default
  isWelcomed: boolean; // the onboarding was dismissed
  notify: boolean; // notify of gates while the tab is hidden
  presence: boolean; // others see what this browser shows, and it sees who else looks
  gates: "rows" | "full"; // how gates side by side are shown
  sidebar: "wide" | "narrow"; // narrow: a strip of icons, where there is room for a sidebar
  browserTools: Readonly<Record<string, "off" | "auto" | "ask" | "always">>; // by name
}

const KEY = "everturn.settings";
const DEFAULTS: Settings = { language: "auto", theme: "auto", agent: "", model: "", isWelcomed: false, notify: false, presence: true, gates: "rows", sidebar: "wide", browserTools: {} };

const TOOL_POLICIES: readonly unknown[] = ["off", "auto", "ask", "always"];
const VALIDATORS: { readonly [Name in keyof Settings]: (value: unknown) => boolean } = {
  language: (value) => value === "auto" || value === "en" || value === "zh",
  theme: (value) => value === "auto" || value === "light" || value === "dark",
  agent: (value) => typeof value === "string",
  model: (value) => typeof value === "string",
  isWelcomed: (value) => typeof value === "boolean",
  notify: (value) => typeof value === "boolean",
  presence: (value) => typeof value === "boolean",
  gates: (value) => value === "rows" || value === "full",
  sidebar: (value) => value === "wide" || value === "narrow",
  browserTools: (value) => typeof value === "object" && value !== null && Object.values(value).every((policy) => TOOL_POLICIES.includes(policy)),
};

/** Parse stored settings; an invalid value (of another version, or written by others) falls back to its default. */
export function parseSettings(text: string): Settings {
  try {
    const valid = Object.entries((JSON.parse(text) as object | null) ?? {}).filter(([name, value]) => Object.hasOwn(VALIDATORS, name) && VALIDATORS[name as keyof Settings](value));
    return { ...DEFAULTS, ...Object.fromEntries(valid) };
  } catch {
    return DEFAULTS;
  }
}

function readSettings(): Settings {
  try {
    return parseSettings(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return DEFAULTS; // a private window may have no storage
  }
}

export const settings = new Store<Settings>(readSettings());

export function updateSettings(changes: Partial<Settings>): void {
  settings.set({ ...settings.value, ...changes });
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.value));
  } catch {
    // A private window may store nothing; the UI works without.
  }
}

/** Apply the settings to the document, now and whenever they change, also from other tabs. */
export function applySettings(): void {
  const applyNow = () => {
    const { theme, language: languageSetting } = settings.value;
    language.set(languageSetting === "auto" ? preferredLanguage(navigator.languages) : languageSetting);
    document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  applyNow();
  settings.subscribe(applyNow);
  addEventListener("storage", (event) => event.key === KEY && settings.set(readSettings()));
}
