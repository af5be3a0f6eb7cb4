/** Lines above everything: a login that has ended, a server that is away, and what a page without https cannot do. */
import { useEffect, useState } from "preact/hooks";
import { Button, Icon } from "../ui/kit";
import { me } from "./app";
import { ended } from "./ended";
import { comeBack } from "./entering";
import { useStore } from "./store";
import { words } from "./words";
import "./banners.css";

const useWords = words(
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
      <Ended />
      <PlainHttp />
    </div>
  );
}

function Ended() {
  const t = useWords();
  const isEnded = useStore(ended);
  const who = useStore(me);
  const [isStill, setStill] = useState(false);
  useEffect(() => {
    if (!isEnded) return setStill(false);
    const look = () => void comeBack();
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [isEnded]);
  if (!isEnded || who === "stranger") return null;
  return (
    <div class="banner warn" role="alert">
      <Icon name="lock" />
      <span class="grow">{t.ended}{isStill && ` ${t.still}`}</span>
      <a class="button little" href="/" target="_blank" rel="noopener">{t.open}</a>
      <Button little kind="primary" onClick={() => void comeBack().then((isBack) => setStill(!isBack))}>{t.again}</Button>
    </div>
  );
}

const KEY = "everturn.plain-http";

function PlainHttp() {
  const t = useWords();
  const [isShown, setShown] = useState(() => !isSecureContext && !isRead());
  if (!isShown) return null;
  const dismiss = () => {
    setShown(false);
    try {
      localStorage.setItem(KEY, "read");
    } catch {
      // It is said again next time.
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

function isRead(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}
