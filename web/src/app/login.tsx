/** Login page. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../ui/components";
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
  return (
    <main class="login">
      <div class="box">
        <p class="brand"><Brand /></p>
        <h1>{t.title}</h1>
        {hasProvider() && (
          <>
            <a class="button primary" href="/oidc/login">{t.provider}</a>
            <p class="or small muted">{t.or}</p>
          </>
        )}
        <p>{t.how}</p>
        <pre><code>everturn login</code></pre>
        <p>{t.then}</p>
        <div class="row wrap">
          <Button onClick={() => void recheckLogin().then((isLoggedIn) => setStillLoggedOut(!isLoggedIn))}>{t.look}</Button>
          <span class="grow small muted" role="status">{stillLoggedOut && t.still}</span>
          <Button kind="quiet" little lang={currentLanguage === "zh" ? "en" : "zh-CN"} onClick={() => updateSettings({ language: currentLanguage === "zh" ? "en" : "zh" })}>{t.other}</Button>
        </div>
      </div>
    </main>
  );
}

/** Whether the server offers OpenID Connect: a meta tag of the page says so. */
function hasProvider(): boolean {
  return document.querySelector<HTMLMetaElement>('meta[name="everturn-oidc"]')?.content === "yes";
}
