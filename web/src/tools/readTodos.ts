/** Reads the arguments of a `write_todos` call. */
import { isObject, parseJson } from "../gates/json";

export interface Todo {
  content: string;
  status: "pending" | "in_progress" | "completed";
}

const STATUSES: readonly unknown[] = ["pending", "in_progress", "completed"];

/** The to-dos that a call writes; null if it is another call, or if its arguments are not such a list. */
export function readTodos(tool: string, text: string): Todo[] | null {
  if (tool !== "write_todos" || text.length > 100_000) return null;
  const value = parseJson(text);
  const todos = isObject(value) ? value["todos"] : null;
  const isTodo = (item: unknown): item is Todo => isObject(item) && typeof item["content"] === "string" && STATUSES.includes(item["status"]);
  return Array.isArray(todos) && todos.length > 0 && todos.length <= 50 && todos.every(isTodo) ? todos : null;
}
