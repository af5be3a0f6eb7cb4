/** Share dialog: who may see a conversation, sharing with people, roles and links, and revoking it. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { NewShare, ShareView, SharingView } from "@everturn/client";
import { attempt, client, me } from "../app/app";
import { hrefFor } from "../app/route";
import { format } from "../app/texts";
import { useFetch, type Fetched } from "../app/useFetch";
import { Button, CopyButton, Dialog, ErrorLine, Field, Icon, type IconName } from "../ui/components";
import "./shareDialog.css";
import { useTexts } from "../locales/shareDialog.gen";

const ROLES = ["viewer", "member", "approver", "owner"] as const;
const DAY = 86_400; // seconds
const MANY = 8; // shares from which on they can be searched
const PERIODS = [DAY, 7 * DAY, 30 * DAY, 0] as const; // of links; 0: until it is revoked
const ICONS: Record<ShareView["kind"], IconName> = { user: "chat", role: "people", link: "link", admin: "eye" };

interface Props {
  session: string;
  sharing: SharingView;
  onChange: (sharing: SharingView) => void;
  onClose: () => void;
}

type People = Awaited<ReturnType<typeof client.people>>["people"];

export function ShareDialog({ session, sharing, onChange, onClose }: Props) {
  const t = useTexts();
  const { author, level, shares } = sharing;
  const user = me.value;
  const isOwn = user !== null && user !== "anonymous" && user.user === author;
  const canManage = level === "manage";
  const people = useFetch<{ people: People }>(() => canManage ? client.people() : Promise.resolve({ people: [] }));
  const [words, setWords] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const revoked = useRef(-1); // the row whose button had the focus
  const reload = async () => {
    const found = await attempt(client.sharing(session));
    if (found) onChange(found);
  };
  const revoke = async (share: ShareView, row: number) => {
    if ((await attempt(client.unshare(session, share.id).then(() => true))) === undefined) return;
    revoked.current = row;
    await reload();
  };
  useLayoutEffect(() => {
    if (revoked.current < 0) return;
    const buttons = list.current!.querySelectorAll("button");
    (buttons[Math.min(revoked.current, buttons.length - 1)] ?? list.current!).focus();
    revoked.current = -1;
  }, [shares]);
  const labelOf = ({ kind, name }: ShareView) => kind === "role" ? t.role(name) : kind === "link" ? t.link : nameOf(name, people.value?.people ?? []);
  const rows = shares.map((share) => ({ share, label: labelOf(share) })).filter(({ label }) => shares.length <= MANY || label.toLowerCase().includes(words.trim().toLowerCase()));
  return (
    <Dialog title={t.title} onClose={onClose}>
      <p class="muted">{canManage ? t.about : t.not_yours}</p>
      {canManage && <ShareForm session={session} author={author} people={people} onDone={reload} />}
      <section>
        <h3>{t.access} <span class="small muted" role="status">{shares.length > MANY && format.number(shares.length + 1)}</span></h3>
        {shares.length > MANY && <input class="input" type="search" aria-label={t.search} placeholder={t.search} value={words} onInput={(event) => setWords(event.currentTarget.value)} />}
        <ul class={`shares ${shares.length > MANY ? "many" : ""}`} ref={list} tabIndex={-1} aria-label={t.access}>
          {!words && <li><Icon name="lock" /><span class="grow"><strong dir="auto">{isOwn ? t.you(author) : author || t.owners}</strong> <span class="small muted">{t.author}</span></span></li>}
          {rows.map(({ share, label }, row) => <ShareRow key={share.id} share={share} label={label} onRevoke={() => revoke(share, row)} />)}
        </ul>
        {canManage && !shares.length && <p class="small muted">{t.nobody}</p>}
        {words && !rows.length && <p class="small muted">{t.none}</p>}
      </section>
      {canManage && <LinkForm session={session} onDone={reload} />}
    </Dialog>
  );
}

function nameOf(id: string, people: People): string {
  const name = people.find((person) => person.id === id)?.name;
  return name && name !== id ? `${name} (${id})` : id;
}

function ShareRow({ share, label, onRevoke }: { share: ShareView; label: string; onRevoke: () => Promise<void> }) {
  const t = useTexts();
  const { kind, level, expires, reason, created, via } = share;
  const [isBusy, setBusy] = useState(false);
  const revoke = async () => {
    if (isBusy) return;
    setBusy(true);
    await onRevoke();
    setBusy(false);
  };
  const details = [
    kind === "admin" ? t.admin(reason) : level === "write" ? t.can_write : t.can_read,
    via && t.via,
    kind === "link" && t.created(format.moment(created)),
    expires > 0 && t.until(format.moment(expires)),
  ].filter(Boolean);
  return (
    <li>
      <Icon name={ICONS[kind]} />
      <span class="grow"><strong dir="auto">{label}</strong> <span class="small muted" dir="auto">{details.join(" · ")}</span></span>
      {/* Not disabled while it is busy: it would lose the focus. */}
      {kind !== "admin" && <Button little kind="danger" aria-disabled={isBusy} aria-label={t.revoke_of(label)} onClick={() => void revoke()}>{t.revoke}</Button>}
    </li>
  );
}

function ShareForm({ session, author, people: { value, problem }, onDone }: {
  session: string; author: string; people: Fetched<{ people: People }>; onDone: () => Promise<void>;
}) {
  const t = useTexts();
  const who = useRef<HTMLSelectElement>(null);
  const [chosen, setChosen] = useState("");
  const [level, setLevel] = useState<NonNullable<NewShare["level"]>>("read");
  const people = (value?.people ?? []).filter((person) => person.id !== author);
  const share = async () => {
    const [kind, name] = [chosen.slice(0, 5), chosen.slice(5)];
    const request: NewShare = kind === "role:" ? { role: name as (typeof ROLES)[number], level } : { user: name, level };
    if ((await attempt(client.share(session, request))) === undefined) return;
    setChosen("");
    who.current?.focus(); // the button is disabled until somebody is chosen
    await onDone();
  };
  if (problem) return <ErrorLine>{problem}</ErrorLine>;
  return (
    <form class="share-form" onSubmit={(event) => { event.preventDefault(); if (chosen) void share(); }}>
      <Field label={t.with}>
        <select ref={who} class="input" value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          <option value="">{t.choose}</option>
          {people.length > 0 && <optgroup label={t.people}>{people.map(({ id }) => <option key={id} value={`user:${id}`}>{nameOf(id, people)}</option>)}</optgroup>}
          <optgroup label={t.roles}>{ROLES.map((role) => <option key={role} value={`role:${role}`}>{t.role(role)}</option>)}</optgroup>
        </select>
      </Field>
      <Field label={t.may}>
        <select class="input" value={level} onChange={(event) => setLevel(event.currentTarget.value === "write" ? "write" : "read")}>
          <option value="read">{t.can_read}</option>
          <option value="write">{t.can_write}</option>
        </select>
      </Field>
      <Button type="submit" kind="primary" disabled={!chosen}>{t.share}</Button>
    </form>
  );
}

function LinkForm({ session, onDone }: { session: string; onDone: () => Promise<void> }) {
  const t = useTexts();
  const [period, setPeriod] = useState<number>(PERIODS[1]);
  const [made, setMade] = useState("");
  const link = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => link.current?.focus(), [made]); // on a phone it is below what is seen
  const create = async () => {
    const created = await attempt(client.createLink(session, { expires: period ? Math.floor(Date.now() / 1000) + period : 0 }));
    if (!created) return;
    // After "#": a browser does not send it, so that no log of a proxy has it.
    setMade(`${location.origin}/${hrefFor({ page: "link", link: created.link })}`);
    await onDone();
  };
  return (
    <section class="link-form">
      <h3>{t.link_title}</h3>
      <p class="small muted">{t.link_about}</p>
      <div class="share-form">
        <Field label={t.expires}>
          <select class="input" value={period} onChange={(event) => setPeriod(Number(event.currentTarget.value))}>
            {PERIODS.map((seconds) => <option key={seconds} value={seconds}>{seconds ? t.days(seconds / DAY) : t.never}</option>)}
          </select>
        </Field>
        <Button icon="link" onClick={() => void create()}>{t.create}</Button>
      </div>
      {made && (
        <div class="made" role="status">
          <p class="small">{t.made}</p>
          <div class="row"><input ref={link} class="input" readOnly aria-label={t.link} value={made} onFocus={(event) => event.currentTarget.select()} /><CopyButton text={made} label={t.copy} done={t.copied} /></div>
        </div>
      )}
    </section>
  );
}
