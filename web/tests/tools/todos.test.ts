import { describe, expect, it } from "vitest";
import { readTodos } from "../../src/tools/readTodos";

const todos = [{ content: "Read", status: "completed" }, { content: "Write", status: "pending" }];

describe("to-dos", () => {
  it("are read from the arguments of write_todos", () => {
    expect(readTodos("write_todos", JSON.stringify({ todos }))).toEqual(todos);
  });

  it.each([
    ["other_tool", JSON.stringify({ todos })],
    ["write_todos", "{"],
    ["write_todos", "[]"],
    ["write_todos", JSON.stringify({ todos: [] })],
    ["write_todos", JSON.stringify({ todos: [{ content: 3, status: "pending" }] })],
    ["write_todos", JSON.stringify({ todos: [{ content: "a", status: "late" }] })],
    ["write_todos", JSON.stringify({ todos: Array(51).fill(todos[0]) })],
  ])("are not read from %s %s", (tool, text) => {
    expect(readTodos(tool, text)).toBeNull();
  });
});
