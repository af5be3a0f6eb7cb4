/** Users section: roles, disabling, removal, budgets, links that reset a password. */
import { useState } from "preact/hooks";
import type { NewInvitationView, UserView } from "@everturn/client";
import { attempt, hasRole, me } from "../../app/app";
import { hrefFor } from "../../app/route";
import { format } from "../../app/texts";
import { Badge, Button, Dialog, Field, Menu } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { DataTable, Loaded, RolePicker, SecretDialog } from "./parts";
import { fetchUsers, inviteLink, putBudget, putUser, removeUser, resetPassword } from "./peopleApi";
import { useTexts } from "../../locales/adminUsers.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

const DAY = 86_400;
type Asked = { kind: "remove" | "budget"; user: UserView } | { kind: "link"; user: UserView; link: NewInvitationView };

export function Users() {
  const t = useTexts();
  const a = useAdmin();
  const fetched = useFetch(fetchUsers);
  const [asked, setAsked] = useState<Asked | null>(null);
  const done = () => { setAsked(null); fetched.reload(); };
  const change = async (user: UserView, changed: Partial<UserView>) => {
    const { name, role, is_active } = { ...user, ...changed };
    await attempt(putUser(user.id, { name, role, is_active }));
    fetched.reload();
  };
  const reset = async (user: UserView) => {
    const link = await attempt(resetPassword(user.id));
    if (link) setAsked({ kind: "link", user, link });
  };
  return (
    <>
      <div class="row wrap">
        <p class="muted grow">{t.about} {t.fixed}</p>
        <a class="button primary" href={hrefFor({ page: "admin", section: "invitations" })}>{t.invite}</a>
      </div>
      <Loaded of={fetched}>{({ users }) => (
        <DataTable label={a.users} head={[a.user, a.role, a.status, t.password, t.budget, a.lastUsed, a.action]}>
          {users.map((user) => <UserRow key={user.id} user={user} onChange={change} onAsk={setAsked} onReset={reset} />)}
        </DataTable>
      )}</Loaded>
      {asked?.kind === "link" && <SecretDialog title={t.resetTitle(asked.user.id)} about={t.resetWhat(asked.user.id)} secret={inviteLink(asked.link.secret)} onClose={done} />}
      {asked?.kind === "budget" && <BudgetDialog user={asked.user} onClose={done} />}
      {asked?.kind === "remove" && (
        <Dialog title={t.sureRemove(asked.user.id)} onClose={() => setAsked(null)}>
          <p>{t.removeWhat}</p>
          <div class="row wrap">
            <Button autoFocus onClick={() => setAsked(null)}>{a.cancel}</Button>
            <Button kind="danger" icon="trash" onClick={() => void attempt(removeUser(asked.user.id)).then(done)}>{t.yesRemove}</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function UserRow({ user, onChange, onAsk, onReset }: {
  user: UserView; onChange: (user: UserView, changed: Partial<UserView>) => Promise<void>; onAsk: (asked: Asked) => void; onReset: (user: UserView) => Promise<void>;
}) {
  const t = useTexts();
  const a = useAdmin();
  const caller = me.value;
  const isCaller = caller !== null && caller !== "anonymous" && caller.user === user.id;
  const isAbove = !hasRole(user.role);
  const items = [
    ...(isCaller ? [] : [{ label: user.is_active ? t.disable : t.enable, icon: "stop" as const, onSelect: () => void onChange(user, { is_active: !user.is_active }) }]),
    { label: t.setBudget, icon: "chart" as const, onSelect: () => onAsk({ kind: "budget", user }) },
    { label: t.reset, icon: "lock" as const, onSelect: () => void onReset(user) },
    ...(isCaller ? [] : [{ label: t.remove, icon: "trash" as const, onSelect: () => onAsk({ kind: "remove", user }) }]),
  ];
  return (
    <tr>
      <th scope="row"><bdi>{user.id}</bdi>{isCaller && <> <Badge>{t.you}</Badge></>}{user.name && <div class="small muted"><bdi>{user.name}</bdi></div>}</th>
      <td><RolePicker value={user.role} label={t.roleOf(user.id)} disabled={isAbove || isCaller} onPick={(role) => void onChange(user, { role })} /></td>
      <td>{user.is_active ? <Badge tone="good">{t.active}</Badge> : <Badge tone="bad">{t.disabled}</Badge>}</td>
      <td>{user.has_password ? t.hasPassword : t.noPassword}</td>
      <td>{budgetText(user, t)}</td>
      <td class="when">{user.last_used ? format.ago(user.last_used) : a.never}</td>
      <td>{!isAbove && <Menu end button={{ icon: "more", label: t.menu(user.id) }} items={items} />}</td>
    </tr>
  );
}

function budgetText(user: UserView, t: ReturnType<typeof useTexts>): string {
  const { budget } = user;
  if (!budget) return t.noBudget;
  const spent = budget.spent.usage ?? {};
  const tokens = (spent.input ?? 0) + (spent.output ?? 0);
  const days = Math.round(budget.period / DAY);
  return budget.cost ? t.used(format.cost(spent.cost ?? 0), format.cost(budget.cost), days) : t.used(format.number(tokens), format.number(budget.tokens), days);
}

function BudgetDialog({ user, onClose }: { user: UserView; onClose: () => void }) {
  const t = useTexts();
  const a = useAdmin();
  const [tokens, setTokens] = useState(user.budget?.tokens ?? 0);
  const [cost, setCost] = useState(user.budget?.cost ?? 0);
  const [days, setDays] = useState(Math.round((user.budget?.period ?? 30 * DAY) / DAY));
  const save = async () => {
    const { steps = 0, calls = 0 } = user.budget ?? {};
    await attempt(putBudget(user.id, { tokens, cost, steps, calls, period: days * DAY }));
    onClose();
  };
  const number = (label: string, value: number, set: (value: number) => void, step = 1) => (
    <Field label={label}><input class="input" type="number" min={0} step={step} value={value} onInput={(event) => set(Math.max(0, event.currentTarget.valueAsNumber || 0))} /></Field>
  );
  return (
    <Dialog title={t.budgetTitle(user.id)} onClose={onClose}>
      <form class="fields" onSubmit={(event) => { event.preventDefault(); void save(); }}>
        {number(t.tokens, tokens, setTokens)}
        {number(t.cost, cost, setCost, 0.01)}
        {number(t.days, days, setDays)}
        <p class="small muted">{t.budgetHint}</p>
        <div class="row wrap"><Button kind="primary" type="submit">{t.save}</Button><Button onClick={onClose}>{a.cancel}</Button></div>
      </form>
    </Dialog>
  );
}
