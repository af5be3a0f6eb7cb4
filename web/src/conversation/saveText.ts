/** Pieces of an answer as files: the name of a code block's file, and a table as CSV. */

// Languages whose files do not end in the language's own name.
const ENDINGS: Readonly<Record<string, string>> = {
  bash: "sh", csharp: "cs", javascript: "js", kotlin: "kt", markdown: "md", mermaid: "mmd", perl: "pl", plaintext: "txt", powershell: "ps1",
  python: "py", ruby: "rb", rust: "rs", shell: "sh", text: "txt", typescript: "ts", yaml: "yaml", zsh: "sh", "c++": "cpp", "c#": "cs",
};

/** `code.py` for Python; `code.txt` where the language is not known, or its name could not end a file name. */
export function codeFileName(language: string): string {
  const name = language.toLowerCase();
  return name === "dockerfile" || name === "makefile" ? name : `code.${ENDINGS[name] ?? (/^[a-z0-9]{1,12}$/.test(name) ? name : "txt")}`;
}

/** Rows as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is marked as text by an apostrophe. */
export function toCsv(rows: readonly (readonly string[])[]): string {
  const field = (text: string) => {
    const safe = /^[=+@\t\r]|^-(?![\d.,]+%?$)/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}
