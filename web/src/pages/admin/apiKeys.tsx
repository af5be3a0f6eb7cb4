/** API keys section: create a key, which is shown once; keys and logins with their last use; revoke. */
import { useState } from "preact/hooks";
import type { KeyView, NewKeyView, UserView } from "@everturn/client";
import { attempt, me } from "../../app/app";
import { format } from "../../app/texts";
import { Badge, Button, Field } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { DataTable, Loaded, ROLES, RolePicker, SecretDialog, useRoles, type RoleName } from "./parts";
import { createKey, fetchKeys, fetchUsers, revokeKey } from "./peopleApi";
import { useTexts } from "../../locales/adminKeys.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

const isValid = (key: KeyView) => !key.revoked && (!key.expires || key.expires * 1000 > Date.now());

export function ApiKeys() {
  const t = useTexts();
  const a = useAdmin();
  const fetched = useFetch(fetchKeys);
  const users = useFetch(fetchUsers).value?.users ?? [];
  const [made, setMade] = useState<NewKeyView | null>(null);
  const [onlyValid, setOnlyValid] = useState(true);
  return (
    <>
      <p class="muted">{t.about}</p>
      <NewKeyForm users={users} onDone={(key) => { setMade(key); fetched.reload(); }} />
      <label class="check"><input type="checkbox" checked={onlyValid} onChange={(event) => setOnlyValid(event.currentTarget.checked)} /><span>{t.onlyValid}</span></label>
      <Loaded of={fetched}>{({ keys }) => {
        const shown = keys.filter((key) => !onlyValid || isValid(key)).reverse();
        if (!shown.length) return <p class="card">{t.none}</p>;
        return (
          <DataTable label={a.apiKeys} head={[t.name, t.kind, t.user, t.role, a.status, a.lastUsed, a.expires, a.action]}>
            {shown.map((key) => <KeyRow key={key.id} row={key} role={lowerRole(key.role, users.find((user) => user.id === key.user)?.role)} onRevoke={() => void attempt(revokeKey(key.id)).then(fetched.reload)} />)}
          </DataTable>
        );
      }}</Loaded>
      {made && <SecretDialog title={t.secretTitle} about={t.secretWhat} secret={made.secret} onClose={() => setMade(null)} />}
    </>
  );
}

/** The role that a key gives: never a higher one than its user has. */
const lowerRole = (role: RoleName, ofUser: RoleName = role): RoleName => (ROLES.indexOf(ofUser) < ROLES.indexOf(role) ? ofUser : role);

function KeyRow({ row, role, onRevoke }: { row: KeyView; role: RoleName; onRevoke: () => void }) {
  const t = useTexts();
  const a = useAdmin();
  const roles = Object.fromEntries(useRoles());
  const name = row.name || row.id;
  return (
    <tr>
      <th scope="row"><bdi class={row.name ? undefined : "small muted"}>{name}</bdi></th>
      <td>{row.kind === "key" ? t.key : t.login}</td>
      <td><bdi>{row.user}</bdi></td>
      <td>{roles[role] ?? role}</td>
      <td>{isValid(row) ? <Badge tone="good">{t.valid}</Badge> : <Badge>{row.revoked ? t.revoked : t.expired}</Badge>}</td>
      <td class="when">{row.used ? format.ago(row.used) : a.never}</td>
      <td class="when">{row.expires ? format.moment(row.expires) : t.never}</td>
      <td>{isValid(row) && <Button little aria-label={t.revokeOf(name)} onClick={onRevoke}>{t.revoke}</Button>}</td>
    </tr>
  );
}

function NewKeyForm({ users, onDone }: { users: readonly UserView[]; onDone: (key: NewKeyView) => void }) {
  const t = useTexts();
  const caller = me.value !== null && me.value !== "anonymous" ? me.value.user : "";
  const [name, setName] = useState("");
  const [user, setUser] = useState(caller);
  const [role, setRole] = useState<RoleName>("member");
  const [days, setDays] = useState(90);
  const submit = async () => {
    const expires = days ? Date.now() / 1000 + days * 86_400 : 0;
    const made = await attempt(createKey({ name: name.trim(), user, role, expires }));
    if (made) { setName(""); onDone(made); }
  };
  return (
    <form class="card fields" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <Field label={t.name}><input class="input" required maxLength={200} autoComplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <Field label={t.user}>
        <select class="input" value={user} onChange={(event) => setUser(event.currentTarget.value)}>
          {users.filter((one) => one.is_active).map((one) => <option key={one.id} value={one.id} selected={one.id === user}>{one.id}</option>)}
        </select>
      </Field>
      <Field label={t.role}><RolePicker value={role} onPick={setRole} /></Field>
      <Field label={t.expiry}>
        <select class="input" value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
          {([[30, t.days30], [90, t.days90], [365, t.year], [0, t.never]] as const).map(([value, text]) => <option key={value} value={value} selected={value === days}>{text}</option>)}
        </select>
      </Field>
      <div class="row"><Button kind="primary" type="submit" disabled={!name.trim()}>{t.create}</Button></div>
    </form>
  );
}
