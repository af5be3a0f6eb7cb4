/** Banners above the page: the login has expired, or plain http limits what the browser can do. */
import { useEffect, useState } from "preact/hooks";
import { Button, Icon } from "../ui/components";
import { me } from "./app";
import { loggedOut } from "./loggedOut";
import { recheckLogin } from "./auth";
import { useStore } from "./store";
import { defineTexts } from "./texts";
import "./banners.css";

const useTexts = defineTexts(
  {
    ended: "Your login has ended. What you have typed is still here: log in again in another tab, then go on.",
    open: "Log in in a new tab",
    again: "Go on",
    still: "Nobody is logged in yet.",
    plain: "This page came over plain http from another machine, so notifications and the browser's own files are missing here. Serve it over https, or open it through an SSH tunnel as localhost.",
    dismiss: "Dismiss",
  },
  {
    ended: "登录已失效。您输入的内容还在：请在另一个标签页重新登录，然后继续。",
    open: "在新标签页登录",
    again: "继续",
    still: "还没有人登录。",
    plain: "此页面通过普通 http 从另一台机器载入，因此无法使用通知和浏览器文件存储。请改用 https，或通过 SSH 隧道以 localhost 打开。",
    dismiss: "关闭",
  },
);

export function Banners() {
  return (
    <div class="banners">
      <LoggedOutBanner />
      <PlainHttpBanner />
    </div>
  );
}

function LoggedOutBanner() {
  const t = useTexts();
  const isLoggedOut = useStore(loggedOut);
  const user = useStore(me);
  const [stillLoggedOut, setStillLoggedOut] = useState(false);
  useEffect(() => {
    if (!isLoggedOut) return setStillLoggedOut(false);
    const recheck = () => void recheckLogin();
    addEventListener("focus", recheck);
    return () => removeEventListener("focus", recheck);
  }, [isLoggedOut]);
  if (!isLoggedOut || user === "anonymous") return null;
  return (
    <div class="banner warn" role="alert">
      <Icon name="lock" />
      <span class="grow">{t.ended}{stillLoggedOut && ` ${t.still}`}</span>
      <a class="button little" href="/" target="_blank" rel="noopener">{t.open}</a>
      <Button little kind="primary" onClick={() => void recheckLogin().then((isLoggedIn) => setStillLoggedOut(!isLoggedIn))}>{t.again}</Button>
    </div>
  );
}

const KEY = "everturn.plain-http";

function PlainHttpBanner() {
  const t = useTexts();
  const [isShown, setShown] = useState(() => !isSecureContext && !isDismissed());
  if (!isShown) return null;
  const dismiss = () => {
    setShown(false);
    try {
      localStorage.setItem(KEY, "read");
    } catch {
      // It is shown again next time.
    }
  };
  return (
    <div class="banner" role="note">
      <Icon name="lock" />
      <span class="grow">{t.plain}</span>
      <Button little kind="quiet" icon="close" aria-label={t.dismiss} onClick={dismiss} />
    </div>
  );
}

function isDismissed(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}
