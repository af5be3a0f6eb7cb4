/** New conversation page: composer and suggestions. */
import { useEffect, useState } from "preact/hooks";
import { hasRole, me, refreshAgents } from "../app/app";
import { useStore } from "../app/store";
import { Button } from "../ui/components";
import { EmptyState } from "../pages/emptyState";
import { useCurrentChoice } from "../pages/pickers";
import { Composer } from "./composer";
import { preloadConversation } from "./conversation";
import "./newConversation.css";
import { useTexts } from "../locales/newConversation.gen";

export function NewConversation() {
  const t = useTexts();
  useStore(me);
  useEffect(refreshAgents, []); // an administrator may have added some
  const { agent, model } = useCurrentChoice();
  const tries = model === "offline:demo" ? [t.demoTime, t.demoNote] : [t.one, t.two, t.three];
  const [isTemporary, setTemporary] = useState(false);
  const [suggested, setSuggested] = useState<{ text: string } | null>(null);
  return (
    <div class="conversation new">
      <div class="greeting" onInput={() => void preloadConversation()}>
        <h1>{hasRole("member") ? t.hello : t.read}</h1>
        {hasRole("member") && agent?.description && <p class="muted">{agent.description}</p>}
        <EmptyState />
        {hasRole("member") ? (
          <>
            <Composer suggested={suggested} isTemporary={isTemporary} />
            <p class="row wrap temporary">
              <Button little kind="quiet" icon="clock" aria-pressed={isTemporary} onClick={() => setTemporary(!isTemporary)}>{t.temporary}</Button>
              {isTemporary && <span class="small muted" role="status">{t.temporary_about}</span>}
            </p>
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
