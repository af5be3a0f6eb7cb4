/** Administration: its sections in groups, as a list beside them, or as a select on a small screen. A section is a line in SECTIONS, a name in GROUPS and a text. */
import type { ComponentType } from "preact";
import { hasRole } from "../../app/app";
import { lazy } from "../../app/lazy";
import { NotFound } from "../../app/notFound";
import { hrefFor, navigate } from "../../app/route";
import { Field } from "../../ui/components";
import "./admin.css";
import { useTexts } from "../../locales/admin.gen";

const SECTIONS = {
  users: lazy(async () => (await import("./users")).Users),
  invitations: lazy(async () => (await import("./invitations")).Invitations),
  apiKeys: lazy(async () => (await import("./apiKeys")).ApiKeys),
  models: lazy(async () => (await import("./models")).Models),
  agents: lazy(async () => (await import("./agents")).Agents),
  mcp: lazy(async () => (await import("./mcpServers")).McpServers),
  rules: lazy(async () => (await import("./rules")).Rules),
  schedules: lazy(async () => (await import("./schedules")).TenantSchedules),
  webhooks: lazy(async () => (await import("./webhooks")).Webhooks),
  hooks: lazy(async () => (await import("./inboundHooks")).InboundHooks),
  usage: lazy(async () => (await import("./usage")).UserUsagePage),
  audit: lazy(async () => (await import("./audit")).Audit),
  quarantine: lazy(async () => (await import("./quarantine")).Quarantine),
} satisfies Record<string, ComponentType>;
type Section = keyof typeof SECTIONS;
const NAMES = Object.keys(SECTIONS) as Section[];

const GROUPS = {
  people: ["users", "invitations"],
  access: ["apiKeys", "rules"],
  tools: ["models", "agents", "mcp"],
  automation: ["schedules", "webhooks", "hooks"],
  operations: ["usage", "audit", "quarantine"],
} satisfies Record<string, readonly Section[]>;
type Group = keyof typeof GROUPS;

export function Admin({ section }: { section: string }) {
  const t = useTexts();
  const current = NAMES.find((name) => name === (section || "users"));
  if (!current) return <NotFound />;
  const Shown = SECTIONS[current];
  return (
    <div class="page admin">
      <div class="inner">
        <h1>{t.title}</h1>
        {!hasRole("owner") ? <p class="card">{t.forbidden}</p> : (
          <div class="grouped">
            <SectionList current={current} />
            <SectionSelect current={current} />
            <section class="section" aria-label={t[current]}><Shown key={current} /></section>
          </div>
        )}
      </div>
    </div>
  );
}

function useGroups(): [Group, string, readonly Section[]][] {
  const t = useTexts();
  const texts: Record<Group, string> = { people: t.people, access: t.access, tools: t.tools, automation: t.automation, operations: t.operations };
  return (Object.keys(GROUPS) as Group[]).map((group) => [group, texts[group], GROUPS[group]]);
}

function SectionList({ current }: { current: Section }) {
  const t = useTexts();
  return (
    <nav class="section-list" aria-label={t.sections}>
      {useGroups().map(([group, text, names]) => (
        <div key={group}>
          <p id={`admin-${group}`} class="small muted">{text}</p>
          <ul aria-labelledby={`admin-${group}`}>
            {names.map((name) => <li key={name}><a href={hrefFor({ page: "admin", section: name })} aria-current={name === current ? "page" : undefined}>{t[name]}</a></li>)}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function SectionSelect({ current }: { current: Section }) {
  const t = useTexts();
  return (
    <nav class="section-select" aria-label={t.sections}>
      <Field label={t.section}>
        <select class="input" value={current} onChange={(event) => navigate({ page: "admin", section: event.currentTarget.value })}>
          {useGroups().map(([group, text, names]) => (
            <optgroup key={group} label={text}>{names.map((name) => <option key={name} value={name} selected={name === current}>{t[name]}</option>)}</optgroup>
          ))}
        </select>
      </Field>
    </nav>
  );
}
