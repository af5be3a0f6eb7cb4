/** Names of the browser tools. */
export type ToolName = "browser_js_eval" | "list_directory" | "read_file" | "write_file";
