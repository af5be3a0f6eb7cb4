/** A link to a conversation: it is opened once, and leads to the conversation. */
import { useEffect, useState } from "preact/hooks";
import { ServerError } from "@everturn/client";
import { client, errorMessage } from "../app/app";
import { navigate } from "../app/route";
import { Button, Spinner } from "../ui/components";
import { useTexts } from "../locales/openLink.gen";

export function OpenLink({ link }: { link: string }) {
  const t = useTexts();
  const [problem, setProblem] = useState("");
  const [isDead, setDead] = useState(false);
  useEffect(() => {
    let isCurrent = true;
    client.openLink(link).then(
      // The secret is left in no history.
      ({ session }) => isCurrent && navigate({ page: "session", session }, true),
      (error: unknown) => {
        if (!isCurrent) return;
        setDead(error instanceof ServerError && error.status === 404);
        setProblem(errorMessage(error));
      },
    );
    return () => void (isCurrent = false);
  }, [link]);
  if (!problem) return <div class="page"><div class="inner"><Spinner label={t.opening} /></div></div>;
  return (
    <div class="page">
      <div class="inner">
        <h1>{t.failed}</h1>
        <p role="alert">{isDead ? t.what : problem}</p>
        <p><Button icon="add" onClick={() => navigate({ page: "new" })}>{t.fresh}</Button></p>
      </div>
    </div>
  );
}
