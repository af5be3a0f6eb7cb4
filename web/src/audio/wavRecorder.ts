/** Recordings of the microphone, as WAV: the one format that every server and program reads, and whose duration can be checked. */

export const RATE = 16_000; // samples per second: what speech models are trained on

export interface Recording {
  /** End it. null: there was nothing to hear, or it was discarded. */
  stop(): Promise<Blob | null>;
  discard(): void;
}

export const canRecord = () => typeof MediaRecorder !== "undefined" && typeof OfflineAudioContext !== "undefined" && !!navigator.mediaDevices?.getUserMedia;

/** Start recording; the browser asks the person for permission. */
export async function startRecording(maxSeconds: number): Promise<Recording> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const release = () => stream.getTracks().forEach((track) => track.stop());
  const pieces: Blob[] = [];
  let recorder: MediaRecorder;
  try {
    recorder = new MediaRecorder(stream);
    recorder.ondataavailable = ({ data }) => pieces.push(data);
    recorder.start();
  } catch (error) {
    release();
    throw error;
  }
  const ended = new Promise<void>((resolve) => (recorder.onstop = () => resolve()));
  const end = () => {
    if (recorder.state !== "inactive") recorder.stop();
    release(); // the browser's sign that the microphone is on goes away at once
  };
  return {
    async stop() {
      end();
      await ended;
      const whole = new Blob(pieces, { type: recorder.mimeType });
      return whole.size ? encodeWav(await decode(await whole.arrayBuffer(), maxSeconds)) : null;
    },
    discard: end,
  };
}

/** The samples of a recording, of all its channels together. */
async function decode(bytes: ArrayBuffer, maxSeconds: number): Promise<Float32Array> {
  const audio = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes); // resamples, too
  const mixed = new Float32Array(Math.min(audio.length, Math.floor(maxSeconds * RATE)));
  for (let channel = 0; channel < audio.numberOfChannels; channel++) {
    const samples = audio.getChannelData(channel);
    for (let at = 0; at < mixed.length; at++) mixed[at]! += samples[at]! / audio.numberOfChannels;
  }
  return mixed;
}

/** A WAV file with one channel of 16 bits. */
export function encodeWav(samples: Float32Array): Blob {
  const view = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const text = (at: number, word: string) => [...word].forEach((char, index) => view.setUint8(at + index, char.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + samples.length * 2, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE, true);
  view.setUint32(28, RATE * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((sample, index) => view.setInt16(44 + index * 2, Math.max(-1, Math.min(1, sample)) * 0x7fff, true));
  return new Blob([view.buffer], { type: "audio/wav" });
}
