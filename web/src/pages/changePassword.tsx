/** Change of the caller's own password, for the settings page. */
import { useState } from "preact/hooks";
import type { LoggedIn } from "@everturn/client";
import { client, errorMessage, me, toast } from "../app/app";
import { Button, ErrorLine, Field } from "../ui/components";
import { useTexts } from "../locales/changePassword.gen";

export function ChangePassword() {
  const t = useTexts();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [problem, setProblem] = useState("");
  const save = async () => {
    try {
      await client.send<LoggedIn>("POST", "/api/password", { current, new: next });
      me.set(await client.me()); // the new login has another CSRF token
      setCurrent("");
      setNext("");
      setProblem("");
      toast(t.done);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <form class="card" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <h2>{t.title}</h2>
      <p class="small muted">{t.about}</p>
      <Field label={t.current} hint={t.currentHint}><input class="input" type="password" autoComplete="current-password" maxLength={1000} value={current} onInput={(event) => setCurrent(event.currentTarget.value)} /></Field>
      <Field label={t.next} hint={t.hint}><input class="input" type="password" autoComplete="new-password" required minLength={12} maxLength={1000} value={next} onInput={(event) => setNext(event.currentTarget.value)} /></Field>
      {problem && <ErrorLine>{problem}</ErrorLine>}
      <div class="row"><Button type="submit" disabled={!next}>{t.save}</Button></div>
    </form>
  );
}
