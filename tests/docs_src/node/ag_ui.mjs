// The client of the guide: {address, key, text} in, its messages out.
import { readFileSync } from "node:fs";
import { talk } from "./protocols_ag_ui.mjs";

const { address, key, text } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(await talk(address, key, text)));
process.exit(0);
