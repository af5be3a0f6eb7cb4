/** Dialog for the reason of a rating: suggestions, a text, and what others said. */
import { useState } from "preact/hooks";
import type { SessionFollower } from "@everturn/client";
import { attempt, client, me } from "../app/app";
import { escapeInvisible } from "../gates/invisibleChars";
import { Badge, Button, Dialog, Field } from "../ui/components";
import type { Thumb } from "./ratingButtons";
import { useTexts } from "../locales/rating.gen";

const MAX_REASON = 2000; // characters

export function RatingDialog({ session, message, rating, onClose }: { session: SessionFollower; message: string; rating: Thumb; onClose: () => void }) {
  const t = useTexts();
  const user = me.value && me.value !== "anonymous" ? me.value.user : "";
  const ratings = session.state.ratings.get(message);
  const [reason, setReason] = useState(ratings?.get(user)?.reason ?? "");
  const [isBusy, setBusy] = useState(false);
  const save = async (next: Thumb | "") => {
    setBusy(true);
    if (await attempt(client.rate(session.id, message, { rating: next, ...(next && { reason: reason.trim() }) }).then(() => true))) onClose();
    else setBusy(false);
  };
  const suggestions = rating === "down" ? [t.wrong, t.ignored, t.incomplete, t.long, t.unsafe] : [t.correct, t.clear, t.complete];
  const others = [...(ratings ?? [])].filter(([by, other]) => by !== user && other.rating);
  return (
    <Dialog title={rating === "down" ? t.whatWrong : t.whatGood} onClose={onClose}>
      <div class="row wrap">
        {suggestions.map((text) => <Button key={text} little onClick={() => setReason((now) => (now.includes(text) ? now : [now.trim(), text].filter(Boolean).join("; ")))}>{text}</Button>)}
      </div>
      <Field label={t.reason} hint={t.seen}>
        <textarea class="input" rows={3} dir="auto" autoFocus maxLength={MAX_REASON} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </Field>
      {others.length > 0 && (
        <ul class="others" aria-label={t.others}>
          {others.map(([by, other]) => (
            <li key={by}><Badge tone={other.rating === "up" ? "good" : "bad"}>{other.rating === "up" ? t.up : t.down}</Badge> {escapeInvisible(by)}{other.reason && <>: <span dir="auto">{escapeInvisible(other.reason)}</span></>}</li>
          ))}
        </ul>
      )}
      <div class="row wrap">
        <Button kind="primary" disabled={isBusy || !reason.trim()} onClick={() => void save(rating)}>{t.save}</Button>
        <Button disabled={isBusy} onClick={onClose}>{t.skip}</Button>
        <span class="grow" />
        <Button kind="quiet" disabled={isBusy} onClick={() => void save("")}>{t.withdraw}</Button>
      </div>
    </Dialog>
  );
}
