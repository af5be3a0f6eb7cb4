/** What the server can do with audio; asked once per page. */
import type { AudioView } from "@everturn/client";
import { client } from "../app/app";

let asked: Promise<AudioView> | null = null;

/** Without an answer nothing is offered, and the next one who wants to know asks again. */
export function fetchAudio(): Promise<AudioView | null> {
  asked ??= client.get<AudioView>("/api/audio");
  return asked.catch(() => (asked = null));
}

export function forgetAudio(): void {
  asked = null;
}
