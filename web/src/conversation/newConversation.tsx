/** New conversation page: composer and suggestions. */
import { useState } from "preact/hooks";
import { hasRole, me } from "../app/app";
import { useStore } from "../app/store";
import { defineTexts } from "../app/texts";
import { EmptyState } from "../pages/emptyState";
import { useCurrentChoice } from "../pages/pickers";
import { Composer } from "./composer";
import { preloadConversation } from "./conversation";
import "./newConversation.css";

const useTexts = defineTexts(
  {
    hello: "What shall we do?", read: "Conversations to read", viewer: "You may read the conversations in the list, but not begin one.", try: "Something to try",
    demoTime: "What time is it?", demoNote: "Take a note: lunch with Ada on Friday.",
    one: "Invite Ada and Grace to lunch on Friday, outside if it is sunny.", two: "What tools do you have, and what would you ask me before you use them?", three: "Explain step by step how you would find a slow query.",
  },
  {
    hello: "我们来做什么？", read: "阅读对话", viewer: "您可以阅读列表中的对话，但不能开始新对话。", try: "可以试试",
    // The demo knows these English words only.
    demoTime: "What time is it?（现在几点？）", demoNote: "Take a note: 周五与 Ada 共进午餐。",
    one: "邀请 Ada 和 Grace 周五共进午餐，天晴就在户外。", two: "您有哪些工具？使用前会先问我什么？", three: "请逐步说明如何找出一个慢查询。",
  },
);

export function NewConversation() {
  const t = useTexts();
  useStore(me);
  const { agent, model } = useCurrentChoice();
  const tries = model === "offline:demo" ? [t.demoTime, t.demoNote] : [t.one, t.two, t.three];
  const [suggested, setSuggested] = useState<{ text: string } | null>(null);
  return (
    <div class="conversation new">
      <div class="greeting" onInput={() => void preloadConversation()}>
        <h1>{hasRole("member") ? t.hello : t.read}</h1>
        {hasRole("member") && agent?.description && <p class="muted">{agent.description}</p>}
        <EmptyState />
        {hasRole("member") ? (
          <>
            <Composer suggested={suggested} />
            <ul class="suggestions" aria-label={t.try}>
              {tries.map((text) => (
                <li key={text}><button type="button" class="button quiet" onClick={() => setSuggested({ text })}>{text}</button></li>
              ))}
            </ul>
          </>
        ) : <p>{t.viewer}</p>}
      </div>
    </div>
  );
}
