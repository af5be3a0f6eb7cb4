/** Settings page: language, theme, notifications, browser tools, keys. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { me } from "../app/app";
import { logOut } from "../app/auth";
import { updateSettings, settings, type Settings } from "../app/settings";
import { useStore } from "../app/store";
import { language, defineTexts } from "../app/texts";
import { BROWSER_TOOLS, type BrowserTool } from "../sandbox/tools";
import { Button, Field } from "../ui/components";
import "./settings.css";

const useTexts = defineTexts(
  {
    title: "Settings", kept: "These are kept in this browser only.", look: "Appearance", language: "Language", auto: "As the browser asks", theme: "Theme",
    system: "As the system", light: "Light", dark: "Dark", notes: "Notifications", notify: "Tell me when an answer of mine is awaited and this page is not in view",
    denied: "This browser blocks notifications from this address. Allow them in the site settings of the browser, then switch this on again.",
    insecure: "Notifications need https, or localhost.", missing: "This browser has no notifications.",
    tools: "Tools of this browser", toolsHint: "What a model may ask this browser to do while the page is open. “Off” does not offer it at all.",
    off: "Off", free: "Without asking", ask: "Ask once in a conversation", always: "Ask every time",
    keys: "Keyboard", about: "About", version: (version: string) => `Everturn ${version}`, who: (user: string, tenant: string, role: string) => `${user} in ${tenant}, as ${role}`,
    out: "Log out of this browser", everywhere: "To end all logins of a user, on the machine of the server: see “everturn keys”. An owner can also revoke single logins.",
  },
  {
    title: "设置", kept: "这些设置只保存在此浏览器中。", look: "外观", language: "语言", auto: "跟随浏览器", theme: "主题",
    system: "跟随系统", light: "浅色", dark: "深色", notes: "通知", notify: "当有问题等待我答复而页面不在视野中时通知我",
    denied: "浏览器屏蔽了此地址的通知。请在浏览器的网站设置中允许，然后重新打开此选项。",
    insecure: "通知需要 https 或 localhost。", missing: "此浏览器不支持通知。",
    tools: "浏览器工具", toolsHint: "页面打开时，模型可以请求此浏览器做的事。“关闭”表示完全不提供。",
    off: "关闭", free: "无需询问", ask: "每个对话询问一次", always: "每次询问",
    keys: "键盘", about: "关于", version: (version: string) => `Everturn ${version}`, who: (user: string, tenant: string, role: string) => `${user}，属于 ${tenant}，角色 ${role}`,
    out: "退出此浏览器的登录", everywhere: "要结束某个用户的所有登录，请在服务器所在的机器上使用“everturn keys”。所有者也可以撤销单个登录。",
  },
);

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
        <Section title={t.tools} hint={t.toolsHint}>{BROWSER_TOOLS.map((tool) => <ToolPolicy key={tool.name} tool={tool} />)}</Section>
        <Section title={t.keys}><Keys /></Section>
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

const useKeys = defineTexts(
  {
    palette: "Commands and search", send: "Send", line: "New line", stop: "Stop the turn", edit: "Edit your last message (in an empty box)",
    allow: "Allow once, on a question that has the focus", always: "Allow always: choose what is remembered", deny: "Deny, with a reason", change: "Edit what would run", next: "Next and previous question in the inbox",
  },
  {
    palette: "命令与搜索", send: "发送", line: "换行", stop: "停止当前回合", edit: "编辑上一条消息（输入框为空时）",
    allow: "允许一次（焦点在问题上时）", always: "始终允许：选择要记住的规则", deny: "拒绝并说明理由", change: "编辑将要运行的内容", next: "待办中的下一个与上一个问题",
  },
);

function Keys() {
  const t = useKeys();
  const mod = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
  const all: [string[], string][] = [
    [[mod, "K"], t.palette], [["Enter"], t.send], [["Shift", "Enter"], t.line], [["Esc"], t.stop], [["↑"], t.edit],
    [["y"], t.allow], [["a"], t.always], [["n"], t.deny], [["e"], t.change], [["j", "k"], t.next],
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
