/** Parts that sections of Administration share: loading state, table, a secret that is shown once, picker of a role. */
import type { ComponentChildren } from "preact";
import { hasRole } from "../../app/app";
import type { Fetched } from "../../app/useFetch";
import { Button, CopyButton, Dialog, ErrorLine, Spinner } from "../../ui/components";
import "./admin.css";
import { useTexts } from "../../locales/admin.gen";

/** What is fetched for a section: spinner and problem, until it is there. */
export function Loaded<T>({ of: fetched, children }: { of: Fetched<T>; children: (value: T) => ComponentChildren }) {
  const t = useTexts();
  if (fetched.problem) return <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>;
  return <>{fetched.value === undefined ? <Spinner label={t.loading} /> : children(fetched.value)}</>;
}

/**
 * A table. Where it is too wide for a phone, each row becomes a list, with the heads as labels (admin.css); one of up to five columns
 * scrolls sideways. The heads of its last `numbers` columns stand over numbers.
 */
export function DataTable({ label, head, numbers = 0, wide = false, children }: { label: string; head: readonly string[]; numbers?: number; wide?: boolean; children: ComponentChildren }) {
  const t = useTexts();
  const isWide = head.length > 5 || wide;
  const labels = Object.fromEntries(head.map((text, index) => [`--head-${index + 1}`, JSON.stringify(text)]));
  return (
    <div class={isWide ? "card scroll stacks" : "card scroll"} tabIndex={0} role="region" aria-label={label}>
      <table class={head.at(-1) === t.action ? "acts" : undefined} style={isWide ? labels : undefined}>
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
