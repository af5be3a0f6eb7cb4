/** Mermaid, as one script for the preview frame: the page fetches it as text and hands it over. See `vite.config.ts`. */
import mermaid from "mermaid";

Object.assign(globalThis, { mermaid });
