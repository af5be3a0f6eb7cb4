/** Administration: its sections as tabs. A section is a line in SECTIONS and a text of its name. */
import type { ComponentChildren, ComponentType } from "preact";
import { hasRole } from "../../app/app";
import { lazy } from "../../app/lazy";
import { hrefFor } from "../../app/route";
import type { Fetched } from "../api";
import { Button, CopyButton, Dialog, ErrorLine, Spinner } from "../../ui/components";
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

export function Admin({ section }: { section: string }) {
  const t = useTexts();
  const current = NAMES.find((name) => name === section) ?? "users";
  const Shown = SECTIONS[current];
  return (
    <div class="page admin">
      <div class="inner">
        <h1>{t.title}</h1>
        {!hasRole("owner") ? <p class="card">{t.forbidden}</p> : (
          <>
            <nav class="tabs" aria-label={t.sections}>
              {NAMES.map((name) => <a key={name} href={hrefFor({ page: "admin", section: name })} aria-current={name === current ? "page" : undefined}>{t[name]}</a>)}
            </nav>
            <section class="section" aria-label={t[current]}><Shown key={current} /></section>
          </>
        )}
      </div>
    </div>
  );
}

/** What is fetched for a section: spinner and problem, until it is there. */
export function Loaded<T>({ of: fetched, children }: { of: Fetched<T>; children: (value: T) => ComponentChildren }) {
  const t = useTexts();
  if (fetched.problem) return <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>;
  return <>{fetched.value === undefined ? <Spinner label={t.loading} /> : children(fetched.value)}</>;
}

/** A table that scrolls sideways on a small screen; the heads of its last `numbers` columns stand over numbers. */
export function DataTable({ label, head, numbers = 0, children }: { label: string; head: readonly string[]; numbers?: number; children: ComponentChildren }) {
  return (
    <div class="card scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr>{head.map((text, index) => <th key={text} scope="col" class={index >= head.length - numbers ? "number" : undefined}>{text}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A secret that is shown once. */
export function SecretDialog({ title, about, secret, onClose }: { title: string; about: string; secret: string; onClose: () => void }) {
  const t = useTexts();
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="admin fields-free">
        <p>{about}</p>
        <p class="secret"><code class="grow">{secret}</code><CopyButton text={secret} label={t.copy} done={t.copied} /></p>
      </div>
      <div class="row"><Button kind="primary" onClick={onClose}>{t.close}</Button></div>
    </Dialog>
  );
}

export const ROLES = ["viewer", "member", "approver", "owner", "operator"] as const;
export type RoleName = (typeof ROLES)[number];

/** The roles that the caller may give, with their texts. */
export function useRoles(): [RoleName, string][] {
  const t = useTexts();
  const texts = { viewer: t.roleViewer, member: t.roleMember, approver: t.roleApprover, owner: t.roleOwner, operator: t.roleOperator };
  return ROLES.filter((role) => hasRole(role)).map((role) => [role, texts[role]]);
}

export function RolePicker({ value, label, disabled, onPick }: { value: RoleName; label?: string; disabled?: boolean; onPick: (role: RoleName) => void }) {
  const roles = useRoles();
  const shown = roles.some(([role]) => role === value) ? roles : [...roles, [value, value] as [RoleName, string]];
  return (
    <select class="input" aria-label={label} value={value} disabled={disabled} onChange={(event) => onPick(event.currentTarget.value as RoleName)}>
      {shown.map(([role, text]) => <option key={role} value={role} selected={role === value}>{text}</option>)}
    </select>
  );
}
