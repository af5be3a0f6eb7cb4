import "./styles/tokens.css";
import "./styles/base.css";
import { render } from "preact";
import { wear } from "./app/settings";
import { Shell } from "./app/shell";

wear();
render(<Shell />, document.getElementById("app")!);
