/** Dictation: a recording becomes text in the message box. Nothing is sent by itself. */
import type { AudioView } from "@everturn/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { client, hasRole, toast } from "../app/app";
import { Button, Spinner } from "../ui/components";
import { canRecord, startRecording, type Recording } from "./wavRecorder";
import { fetchAudio } from "./server";
import "./audio.css";
import { useTexts } from "../locales/audio.gen";

export interface DictateProps {
  readonly session?: string;
  readonly onText: (text: string) => void;
}

export function DictateButton({ session = "", onText }: DictateProps) {
  const t = useTexts();
  const [audio, setAudio] = useState<AudioView | null>(null);
  const [state, setState] = useState<"idle" | "recording" | "transcribing">("idle");
  const [seconds, setSeconds] = useState(0);
  const recording = useRef<Recording | null>(null);
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    void fetchAudio().then((view) => isMounted.current && setAudio(view));
    return () => {
      isMounted.current = false;
      recording.current?.discard();
    };
  }, []);
  useEffect(() => {
    if (state !== "recording" || !audio) return;
    const began = Date.now();
    const timer = setInterval(() => {
      const passed = (Date.now() - began) / 1000;
      setSeconds(Math.floor(passed));
      if (passed >= audio.max_seconds) void stop();
    }, 250);
    return () => clearInterval(timer);
  }, [state]);
  const start = async () => {
    try {
      const started = await startRecording(audio!.max_seconds);
      if (!isMounted.current) return started.discard();
      recording.current = started;
      setSeconds(0);
      setState("recording");
    } catch (error) {
      const name = error instanceof DOMException ? error.name : "";
      toast(name === "NotAllowedError" ? t.denied : name === "NotFoundError" ? t.noMicrophone : error);
    }
  };
  const stop = async () => {
    const stopped = recording.current;
    recording.current = null;
    if (!stopped) return;
    setState("transcribing");
    try {
      const data = await stopped.stop();
      const text = data && (await client.transcribe(data, session)).text;
      if (isMounted.current && text) onText(text);
      else if (isMounted.current) toast(t.nothing);
    } catch (error) {
      toast(error);
    }
    if (isMounted.current) setState("idle");
  };
  const discard = () => {
    recording.current?.discard();
    recording.current = null;
    setState("idle");
  };
  if (!audio?.transcription || !hasRole("member") || !canRecord()) return null;
  if (state === "transcribing") return <Spinner label={t.transcribing} />;
  if (state === "idle") return <Button kind="quiet" little icon="microphone" aria-label={t.dictate} onClick={() => void start()} />;
  return (
    <span class="dictation" role="group" aria-label={t.recording}>
      <Button little kind="quiet" icon="stop" class="is-recording" aria-label={t.stop} onClick={() => void stop()} />
      <span class="small" role="timer">{`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`}</span>
      <Button little kind="quiet" icon="close" aria-label={t.discard} onClick={discard} />
    </span>
  );
}
