/** Login page. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../ui/components";
import { recheckLogin } from "./auth";
import { updateSettings, settings } from "./settings";
import { useStore } from "./store";
import { language, defineTexts } from "./texts";
import "./login.css";

const useTexts = defineTexts(
  {
    title: "Log in",
    how: "Open the link that the server printed when it started. It opens once; if it was used or is older than ten minutes, make another on the machine of the server:",
    then: "Open it in this browser. This page goes on by itself as soon as you are logged in.",
    provider: "Log in with your provider",
    or: "or with a link",
    look: "I am logged in",
    still: "This browser is not logged in yet.",
    other: "中文",
  },
  {
    title: "登录",
    how: "请打开服务器启动时打印的链接。它只能使用一次；如果已经用过或超过十分钟，请在服务器所在的机器上再生成一个：",
    then: "在此浏览器中打开该链接。登录成功后，本页会自动继续。",
    provider: "使用身份提供方登录",
    or: "或使用链接",
    look: "我已登录",
    still: "此浏览器尚未登录。",
    other: "English",
  },
);

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
        <p class="brand">Everturn</p>
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
