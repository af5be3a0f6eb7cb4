/** Entry point of the web UI: applies the settings and renders the app shell. */
import "./styles/tokens.css";
import "./styles/base.css";
import { render } from "preact";
import { applySettings } from "./app/settings";
import { Shell } from "./app/shell";

// Somebody clicked on a push notification: show what it is about.
navigator.serviceWorker?.addEventListener("message", ({ data }: MessageEvent<{ type?: string; hash?: string } | null>) => {
  if (data?.type === "everturn-open" && data.hash) location.hash = data.hash;
});

applySettings();
render(<Shell />, document.getElementById("app")!);
