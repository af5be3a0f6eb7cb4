/** Invitations section: links that work once, and create a user with a role. */
import { useState } from "preact/hooks";
import type { InvitationView, NewInvitationView } from "@everturn/client";
import { attempt } from "../../app/app";
import { format } from "../../app/texts";
import { Badge, Button, Field, type Tone } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { DataTable, Loaded, RolePicker, SecretDialog, useRoles, type RoleName } from "./parts";
import { fetchInvitations, invite, inviteLink, revokeInvitation } from "./peopleApi";
import { useTexts } from "../../locales/adminInvitations.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

export function Invitations() {
  const t = useTexts();
  const a = useAdmin();
  const fetched = useFetch(fetchInvitations);
  const [made, setMade] = useState<NewInvitationView | null>(null);
  return (
    <>
      <p class="muted">{t.about}</p>
      <NewInvitationForm onDone={(link) => { setMade(link); fetched.reload(); }} />
      <Loaded of={fetched}>{({ invitations, passwords }) => (
        <>
          {passwords !== "on" && <p class="card small">{passwords === "off" ? t.off : t.missing}</p>}
          {invitations.length === 0 ? <p class="card">{t.none}</p> : (
            <DataTable label={a.invitations} head={[a.user, t.kind, a.role, a.status, t.by, a.expires, a.action]}>
              {invitations.map((row) => <InvitationRow key={row.id} row={row} onRevoke={() => void attempt(revokeInvitation(row.id)).then(fetched.reload)} />)}
            </DataTable>
          )}
        </>
      )}</Loaded>
      {made && <SecretDialog title={t.linkTitle} about={t.linkWhat(made.user)} secret={inviteLink(made.secret)} onClose={() => setMade(null)} />}
    </>
  );
}

function InvitationRow({ row, onRevoke }: { row: InvitationView; onRevoke: () => void }) {
  const t = useTexts();
  const roles = Object.fromEntries(useRoles());
  const isOpen = !row.used && !row.revoked && row.expires * 1000 > Date.now();
  const [tone, text]: [Tone | undefined, string] = isOpen ? ["accent", t.open] : row.used ? ["good", t.used] : row.revoked ? [undefined, t.revoked] : [undefined, t.expired];
  return (
    <tr>
      <th scope="row"><bdi>{row.user}</bdi>{row.name && <div class="small muted"><bdi>{row.name}</bdi></div>}</th>
      <td>{row.kind === "reset" ? t.kindReset : t.kindInvitation}</td>
      <td>{roles[row.role] ?? row.role}</td>
      <td><Badge tone={tone}>{text}</Badge></td>
      <td><bdi>{row.by}</bdi></td>
      <td class="when">{format.moment(row.expires)}</td>
      <td>{isOpen && <Button little aria-label={t.revokeOf(row.user)} onClick={onRevoke}>{t.revoke}</Button>}</td>
    </tr>
  );
}

function NewInvitationForm({ onDone }: { onDone: (made: NewInvitationView) => void }) {
  const t = useTexts();
  const [user, setUser] = useState("");
  const [name, setName] = useState("");
  const [role, setRole] = useState<RoleName>("member");
  const [hours, setHours] = useState(72);
  const submit = async () => {
    const made = await attempt(invite({ user: user.trim(), name: name.trim(), role, hours }));
    if (!made) return;
    setUser("");
    setName("");
    onDone(made);
  };
  return (
    <form class="card fields" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <Field label={t.user} hint={t.userHint}><input class="input" required maxLength={200} autoComplete="off" value={user} onInput={(event) => setUser(event.currentTarget.value)} /></Field>
      <Field label={t.name}><input class="input" maxLength={200} autoComplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <Field label={t.role}><RolePicker value={role} onPick={setRole} /></Field>
      <Field label={t.hours}>
        <select class="input" value={hours} onChange={(event) => setHours(Number(event.currentTarget.value))}>
          {([[24, t.day], [72, t.days3], [168, t.week]] as const).map(([value, text]) => <option key={value} value={value} selected={value === hours}>{text}</option>)}
        </select>
      </Field>
      <div class="row"><Button kind="primary" type="submit" disabled={!user.trim()}>{t.create}</Button></div>
    </form>
  );
}
