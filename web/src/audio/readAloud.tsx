/** Reads a message aloud: with the speech of the server or, where it has none, with that of the browser. */
import { textOf, type Message } from "@everturn/client";
import { useEffect, useState } from "preact/hooks";
import { client, mayWrite, toast } from "../app/app";
import { Button } from "../ui/components";
import { fetchAudio } from "./server";
import { splitText, spokenText } from "./spokenText";
import "./audio.css";
import { useTexts } from "../locales/audio.gen";

const PIECE = 600; // characters: the first is soon there, and the next is fetched meanwhile
let current: AbortController | null = null; // one message is read at a time

const hasBrowserSpeech = () => typeof speechSynthesis !== "undefined" && typeof SpeechSynthesisUtterance !== "undefined";

export function ReadAloud({ session, message }: { session: string; message: Message }) {
  const t = useTexts();
  const [most, setMost] = useState<number | null>(null); // characters that the server speaks at once; null: it has no speech
  const [reading, setReading] = useState<AbortController | null>(null);
  useEffect(() => {
    let isMounted = true;
    void fetchAudio().then((audio) => isMounted && audio?.speech && mayWrite(session) && setMost(audio.max_characters));
    return () => void (isMounted = false);
  }, [session]);
  useEffect(() => () => reading?.abort(), [reading]);
  if (most === null && !hasBrowserSpeech()) return null;
  const read = async () => {
    current?.abort();
    const abort = (current = new AbortController());
    setReading(abort);
    try {
      const pieces = splitText(spokenText(textOf(message.parts)), Math.min(PIECE, most ?? PIECE));
      if (!pieces.length) toast(t.noText);
      await (most === null ? speakInBrowser(pieces, abort.signal) : speakFromServer(session, pieces, abort.signal));
    } catch (error) {
      if (!abort.signal.aborted) toast(error);
    }
    setReading((now) => (now === abort ? null : now));
  };
  return reading && !reading.signal.aborted
    ? <Button kind="quiet" little icon="stop" class="is-reading" aria-label={t.stopReading} onClick={() => { reading.abort(); setReading(null); }} />
    : <Button kind="quiet" little icon="speaker" aria-label={t.read} onClick={() => void read()} />;
}

async function speakFromServer(session: string, pieces: readonly string[], signal: AbortSignal): Promise<void> {
  const fetchPiece = (at: number) => {
    const piece = pieces[at];
    const audio = piece === undefined || signal.aborted ? null : client.speak(session, piece);
    audio?.catch(() => {}); // it is awaited later
    return audio;
  };
  let next = fetchPiece(0);
  for (let at = 1; next; at++) {
    const audio = await next;
    if (signal.aborted) return;
    next = fetchPiece(at);
    await play(audio, signal);
  }
}

async function play(audio: Blob, signal: AbortSignal): Promise<void> {
  const url = URL.createObjectURL(audio);
  const player = new Audio(url);
  try {
    await new Promise<void>((resolve, reject) => {
      player.onended = () => resolve();
      player.onerror = () => reject(new Error(player.error?.message || "audio"));
      signal.addEventListener("abort", () => resolve(), { once: true });
      player.play().catch(reject);
    });
  } finally {
    player.pause();
    URL.revokeObjectURL(url);
  }
}

function speakInBrowser(pieces: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    speechSynthesis.cancel();
    const done = () => resolve();
    signal.addEventListener("abort", () => { speechSynthesis.cancel(); done(); }, { once: true });
    if (!pieces.length) done();
    pieces.forEach((piece, at) => {
      const utterance = new SpeechSynthesisUtterance(piece);
      if (/\p{Script=Han}/u.test(piece)) utterance.lang = "zh-CN";
      utterance.onerror = done;
      if (at === pieces.length - 1) utterance.onend = done;
      speechSynthesis.speak(utterance);
    });
  });
}
