/** Invitation page: a person who opened an invitation, or a link that resets a password, sets a password and is logged in. */
import { useEffect, useState } from "preact/hooks";
import type { LoggedIn, OpenedInvitation } from "@everturn/client";
import { Button, ErrorLine, Field, Spinner } from "../ui/components";
import { client, errorMessage } from "./app";
import "./login.css";
import { useTexts } from "../locales/invite.gen";

const LOCAL = "local"; // the tenant of an installation that has only one

export function Invite({ token }: { token: string }) {
  const t = useTexts();
  const [opened, setOpened] = useState<OpenedInvitation | "failed" | null>(null);
  useEffect(() => {
    client.send<OpenedInvitation>("POST", "/api/invitations/open", { token }).then(setOpened, () => setOpened("failed"));
  }, [token]);
  return (
    <main class="login">
      <div class="box">
        <p class="brand">Everturn</p>
        {opened === null ? <Spinner label={t.opening} /> : opened === "failed" ? (
          <>
            <h1>{t.failed}</h1>
            <p>{t.what}</p>
            <a class="button" href="/">{t.home}</a>
          </>
        ) : <AcceptForm token={token} opened={opened} />}
      </div>
    </main>
  );
}

function AcceptForm({ token, opened }: { token: string; opened: OpenedInvitation }) {
  const t = useTexts();
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isReset = opened.kind === "reset";
  const hasPassword = opened.passwords === "on";
  const accept = async () => {
    if (hasPassword && password !== again) return setProblem(t.differ);
    setBusy(true);
    try {
      await client.send<LoggedIn>("POST", "/api/invitations/accept", hasPassword ? { token, password } : { token });
      location.replace("/"); // the page starts anew, as this user
    } catch (error) {
      setProblem(errorMessage(error));
      setBusy(false);
    }
  };
  return (
    <form class="box-form" onSubmit={(event) => { event.preventDefault(); void accept(); }}>
      <h1>{isReset ? t.titleReset : t.title}</h1>
      <p>{isReset ? t.aboutReset(opened.user, opened.tenant) : opened.tenant === LOCAL ? t.aboutLocal(opened.user) : t.about(opened.tenant, opened.user)}</p>
      {opened.passwords === "missing" && <><p>{t.missing}</p><pre><code>pip install 'everturn[passwords]'</code></pre></>}
      {hasPassword && (
        <>
          <input type="text" hidden autoComplete="username" value={opened.user} readOnly />
          <Field label={t.password} hint={t.hint(opened.min_length)}>
            <input class="input" type="password" autoComplete="new-password" required minLength={opened.min_length} maxLength={1000} value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
          </Field>
          <Field label={t.again}>
            <input class="input" type="password" autoComplete="new-password" required maxLength={1000} value={again} onInput={(event) => setAgain(event.currentTarget.value)} />
          </Field>
        </>
      )}
      {problem && <ErrorLine>{problem}</ErrorLine>}
      <div class="row"><Button kind="primary" type="submit" disabled={isBusy || opened.passwords === "missing"}>{isReset ? t.reset : hasPassword ? t.accept : t.enter}</Button></div>
    </form>
  );
}
