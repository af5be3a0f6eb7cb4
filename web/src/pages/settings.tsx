/** Settings page: language, theme, notifications, browser tools, keys. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { me } from "../app/app";
import { logOut } from "../app/auth";
import { passwordSupport } from "../app/login";
import { updateSettings, settings, type Settings } from "../app/settings";
import { useStore } from "../app/store";
import { language } from "../app/texts";
import { BROWSER_TOOLS, type BrowserTool } from "../sandbox/tools";
import { lazy } from "../app/lazy";
import { Button, Field } from "../ui/components";
import { ChangePassword } from "./changePassword";
import "./settings.css";
import { useTexts } from "../locales/settings.gen";
import { useTexts as useKeys } from "../locales/settingsKeys.gen";

const Push = lazy(async () => (await import("./push")).Push, true);

export function SettingsPage() {
  const t = useTexts();
  const { language: languageSetting, theme } = useStore(settings);
  return (
    <div class="page settings">
      <div class="inner">
        <div>
          <h1>{t.title}</h1>
          <p class="small muted">{t.kept}</p>
        </div>
        <Section title={t.look}>
          <SelectSetting label={t.language} value={languageSetting} options={[["auto", t.auto], ["en", "English"], ["zh", "中文"]]} onPick={(language) => updateSettings({ language })} />
          <SelectSetting label={t.theme} value={theme} options={[["auto", t.system], ["light", t.light], ["dark", t.dark]]} onPick={(theme) => updateSettings({ theme })} />
        </Section>
        <Notifications />
      <Presence />
        <Push />
        <Section title={t.tools} hint={t.toolsHint}>{BROWSER_TOOLS.map((tool) => <ToolPolicy key={tool.name} tool={tool} />)}</Section>
        <Section title={t.prompts} hint={t.promptsHint}><a class="button" href="#/prompts">{t.open}</a></Section>
        <Section title={t.memory} hint={t.memoryHint}><a class="button" href="#/memory">{t.open}</a></Section>
        <Section title={t.keys}><Keys /></Section>
        {passwordSupport() === "on" && <ChangePassword />}
        <About />
      </div>
    </div>
  );
}

function Section({ title, hint, children }: { title: string; hint?: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {hint && <p class="small muted">{hint}</p>}
      {children}
    </section>
  );
}

function SelectSetting<V extends string>({ label, hint, value, options, onPick }: {
  label: string; hint?: string; value: V; options: readonly (readonly [V, string])[]; onPick: (value: V) => void;
}) {
  return (
    <Field label={label} hint={hint}>
      <select class="input" value={value} onChange={(event) => onPick(event.currentTarget.value as V)}>
        {options.map(([option, text]) => <option key={option} value={option} selected={option === value}>{text}</option>)}
      </select>
    </Field>
  );
}

function Notifications() {
  const t = useTexts();
  const { notify } = useStore(settings);
  const [, redraw] = useState(0);
  const isSupported = "Notification" in window;
  const permission = isSupported ? Notification.permission : "denied";
  // Browsers ask for permission only after a click.
  const toggle = async (isOn: boolean) => {
    if (isOn && permission === "default") await Notification.requestPermission();
    updateSettings({ notify: isOn && Notification.permission === "granted" });
    redraw((count) => count + 1);
  };
  const why = !isSecureContext ? t.insecure : !isSupported ? t.missing : permission === "denied" ? t.denied : "";
  return (
    <Section title={t.notes}>
      <label class="check">
        <input type="checkbox" checked={notify && permission === "granted"} disabled={Boolean(why)} onChange={(event) => void toggle(event.currentTarget.checked)} />
        <span>{t.notify}</span>
      </label>
      {why && <p class="small muted" role="status">{why}</p>}
    </Section>
  );
}

function Presence() {
  const t = useTexts();
  const { presence } = useStore(settings);
  return (
    <Section title={t.presence}>
      <label class="check">
        <input type="checkbox" checked={presence} onChange={(event) => updateSettings({ presence: event.currentTarget.checked })} />
        <span>{t.presenceOn}</span>
      </label>
      <p class="small muted">{t.presenceHint}</p>
    </Section>
  );
}

type Policy = Settings["browserTools"][string];

function ToolPolicy({ tool }: { tool: BrowserTool }) {
  const t = useTexts();
  const currentLanguage = useStore(language);
  const { browserTools } = useStore(settings);
  const options: [Policy, string][] = [["off", t.off], ["auto", t.free], ["ask", t.ask], ["always", t.always]];
  return (
    <SelectSetting label={tool.label[currentLanguage]} hint={tool.about[currentLanguage]} value={browserTools[tool.name] ?? tool.defaultPolicy} options={options}
      onPick={(policy) => updateSettings({ browserTools: { ...browserTools, [tool.name]: policy } })} />
  );
}

function Keys() {
  const t = useKeys();
  const mod = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
  const all: [string[], string][] = [
    [[mod, "K"], t.palette], [["Enter"], t.send], [["Shift", "Enter"], t.line], [[mod, "Enter"], t.steer], [["Esc"], t.stop], [["↑"], t.edit],
    [["Alt", "G"], t.gate], [["y"], t.allow], [["a"], t.always], [["n"], t.deny], [["e"], t.change], [["j", "k"], t.next], [["r"], t.redact],
  ];
  return (
    <dl class="keys">
      {all.map(([keys, text]) => (
        <div key={text} class="row">
          <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function About() {
  const t = useTexts();
  const user = useStore(me);
  if (!user || user === "anonymous") return null;
  return (
    <Section title={t.about}>
      <p>{t.version(user.version)}</p>
      <p class="small muted">{t.who(user.user, user.tenant, user.role)}</p>
      {user.csrf && <div><Button onClick={() => void logOut()}>{t.out}</Button></div>}
      <p class="small muted">{t.everywhere}</p>
    </Section>
  );
}
