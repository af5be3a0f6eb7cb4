/** Entry point of the web UI: applies the settings and renders the app shell. */
import "./styles/tokens.css";
import "./styles/base.css";
import { render } from "preact";
import { applySettings } from "./app/settings";
import { Shell } from "./app/shell";

applySettings();
render(<Shell />, document.getElementById("app")!);
