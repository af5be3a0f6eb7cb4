// Made by scripts/web_types.py from everturn.tools.browser. Do not edit.
export const USUAL_TIME = 5000; // milliseconds
export const MOST_TIME = 30000;
export const BROWSER_JS_EVAL = {
  "description": "Run JavaScript in the person's browser, in a sandbox without page, network, cookies or storage. The code is the body of an async function: return what you want to know. console.log is captured. Files of this conversation: await files.list(path), files.read(path), files.write(path, text).",
  "schema": {
    "type": "object",
    "properties": {
      "code": {
        "type": "string",
        "maxLength": 100000,
        "description": "The body of an async function."
      },
      "timeout_ms": {
        "type": "integer",
        "minimum": 1,
        "maximum": 30000,
        "description": "It is stopped then; 5000 if left out."
      }
    },
    "required": [
      "code"
    ],
    "additionalProperties": false
  },
  "read_only": false,
  "idempotent": true
} as const;
