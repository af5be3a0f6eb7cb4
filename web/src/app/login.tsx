/** Login page. */
import { useEffect, useState } from "preact/hooks";
import { ServerError } from "@everturn/client";
import { Button, Disclosure, ErrorLine, Field } from "../ui/components";
import { client, errorMessage } from "./app";
import { recheckLogin } from "./auth";
import { Brand } from "./branding";
import { updateSettings, settings } from "./settings";
import { useStore } from "./store";
import { language } from "./texts";
import "./login.css";
import { useTexts } from "../locales/login.gen";

export function Login() {
  const t = useTexts();
  useStore(settings);
  const currentLanguage = useStore(language);
  const [stillLoggedOut, setStillLoggedOut] = useState(false);
  useEffect(() => {
    const recheck = () => void recheckLogin();
    addEventListener("focus", recheck);
    return () => removeEventListener("focus", recheck);
  }, []);
  const withLink = (
    <>
      <p>{t.how}</p>
      <pre><code>everturn login</code></pre>
      <p>{t.then}</p>
      <div class="row wrap">
        <Button onClick={() => void recheckLogin().then((isLoggedIn) => setStillLoggedOut(!isLoggedIn))}>{t.look}</Button>
        <span class="grow small muted" role="status">{stillLoggedOut && t.still}</span>
      </div>
    </>
  );
  return (
    <main class="login">
      <div class="box">
        <p class="brand"><Brand /></p>
        <h1>{t.title}</h1>
        {passwordSupport() === "on" && <PasswordForm />}
        {hasProvider() && <a class={passwordSupport() === "on" ? "button" : "button primary"} href="/oidc/login">{t.provider}</a>}
        {passwordSupport() === "missing" && <><p>{t.missing}</p><pre><code>pip install 'everturn[passwords]'</code></pre></>}
        {hasProvider() || passwordSupport() !== "off" ? <Disclosure summary={<span class="small">{t.orLink}</span>}><div class="link-login">{withLink}</div></Disclosure> : withLink}
        <div class="row wrap">
          <span class="grow" />
          <Button kind="quiet" little lang={currentLanguage === "zh" ? "en" : "zh-CN"} onClick={() => updateSettings({ language: currentLanguage === "zh" ? "en" : "zh" })}>{t.other}</Button>
        </div>
      </div>
    </main>
  );
}

function PasswordForm() {
  const t = useTexts();
  const [user, setUser] = useState("");
  const [tenant, setTenant] = useState("local");
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const logIn = async () => {
    setBusy(true);
    setProblem("");
    try {
      await client.send("POST", "/api/login", { tenant: tenant.trim(), user: user.trim(), password });
      location.reload(); // the page starts anew, as this user
    } catch (error) {
      const status = error instanceof ServerError ? error.status : 0;
      setProblem(status === 401 ? t.wrong : status === 429 ? t.tooMany : errorMessage(error));
      setBusy(false);
    }
  };
  return (
    <form class="box-form" onSubmit={(event) => { event.preventDefault(); void logIn(); }}>
      <Field label={t.user}><input class="input" required autoFocus autoComplete="username" maxLength={200} value={user} onInput={(event) => setUser(event.currentTarget.value)} /></Field>
      <Field label={t.password}><input class="input" type="password" required autoComplete="current-password" maxLength={1000} value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></Field>
      <Disclosure summary={<span class="small muted">{t.tenant}: {tenant}</span>}>
        <Field label={t.tenant}><input class="input" required maxLength={200} value={tenant} onInput={(event) => setTenant(event.currentTarget.value)} /></Field>
      </Disclosure>
      {problem && <ErrorLine>{problem}</ErrorLine>}
      <Button kind="primary" type="submit" disabled={isBusy}>{t.signIn}</Button>
    </form>
  );
}

/** Whether people log in with passwords: a meta tag of the page says so. */
export function passwordSupport(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="everturn-passwords"]')?.content || "off";
}

/** Whether the server offers OpenID Connect: a meta tag of the page says so. */
function hasProvider(): boolean {
  return document.querySelector<HTMLMetaElement>('meta[name="everturn-oidc"]')?.content === "yes";
}
