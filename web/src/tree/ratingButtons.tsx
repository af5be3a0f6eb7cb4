/** Ratings of an answer: a thumb is recorded by one click; a dialog takes the reason. */
import { useState } from "preact/hooks";
import type { SessionFollower } from "@everturn/client";
import { attempt, client, me } from "../app/app";
import { lazy } from "../app/lazy";
import { useStore } from "../app/store";
import { Button } from "../ui/components";
import { useTexts } from "../locales/rating.gen";

const RatingDialog = lazy(async () => (await import("./ratingDialog")).RatingDialog, true);

export type Thumb = "up" | "down";

export function RatingButtons({ session, message }: { session: SessionFollower; message: string }) {
  const t = useTexts();
  const who = useStore(me);
  const user = who && who !== "anonymous" ? who.user : "";
  const [isAsked, setAsked] = useState(false);
  const ratings = session.state.ratings.get(message);
  const own = ratings?.get(user)?.rating ?? "";
  const click = async (thumb: Thumb) => {
    // Pressed: the reason, or a withdrawal. A thumb down asks for the reason at once.
    const isDone = own === thumb || (await attempt(client.rate(session.id, message, { rating: thumb }).then(() => true)));
    if (isDone && (own === thumb || thumb === "down")) setAsked(true);
  };
  return (
    <>
      {(["up", "down"] as const).map((thumb) => {
        const count = [...(ratings?.values() ?? [])].filter(({ rating }) => rating === thumb).length;
        return (
          <Button key={thumb} kind="quiet" little icon="thumb" class={`thumb ${thumb}`} aria-label={count > 1 ? `${t[thumb]} (${count})` : t[thumb]} aria-pressed={own === thumb} onClick={() => void click(thumb)} />
        );
      })}
      {isAsked && own && <RatingDialog session={session} message={message} rating={own} onClose={() => setAsked(false)} />}
    </>
  );
}
