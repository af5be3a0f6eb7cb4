/** To-do list: the steps of a task as the model has written them, with a sign and a word for each status. */
import { escapeInvisible } from "../gates/invisibleChars";
import { Icon } from "../ui/components";
import type { IconName } from "../ui/icons";
import { useCardTexts } from "./states";
import type { Todo } from "./readTodos";
import "./todos.css";

const ICONS: Readonly<Record<Todo["status"], IconName>> = { completed: "check", in_progress: "redo", pending: "clock" };

export function TodoList({ todos }: { todos: readonly Todo[] }) {
  const t = useCardTexts();
  const words = { completed: t.todoCompleted, in_progress: t.todoInProgress, pending: t.todoPending };
  return (
    <ol class="todos">
      {todos.map(({ content, status }, index) => (
        <li key={index} class={status} aria-current={status === "in_progress" ? "step" : undefined}>
          <Icon name={ICONS[status]} />
          <span class="visually-hidden">{words[status]}: </span>
          <span dir="auto">{escapeInvisible(content)}</span>
        </li>
      ))}
    </ol>
  );
}
