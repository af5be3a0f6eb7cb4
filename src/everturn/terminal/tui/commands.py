"""Slash commands and actions of the conversation: sends them to the server; refused text returns to the input."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from difflib import get_close_matches
from typing import Final

from everturn import api
from everturn.client import RemoteTurn
from everturn.core.canonical_json import replace_surrogates
from everturn.core.messages import Message
from everturn.core.parts import ContextPart
from everturn.errors import EverturnError
from everturn.terminal.text.paths import parse_paths
from everturn.terminal.text.prompt_history import add_to_history, history_path
from everturn.terminal.tui.command_host import CommandHost
from everturn.terminal.tui.completion import Completion
from everturn.terminal.tui.file_commands import FileCommands
from everturn.terminal.tui.folder import pending_question
from everturn.terminal.tui.folder_commands import expand_folder_command, run_own_command
from everturn.terminal.tui.mcp_offers import context_parts
from everturn.terminal.tui.prompt_commands import refuse_unknown_prompt, use_prompt
from everturn.terminal.tui.session_commands import SESSION_COMMANDS, run_session_command
from everturn.terminal.tui.texts.app import AppTexts, get_app_texts
from everturn.terminal.tui.texts.context import get_context_texts
from everturn.terminal.tui.texts.folder import get_folder_texts

SCREEN_COMMANDS: Final = {
    "/sessions": "sessions",
    "/inbox": "inbox",
    "/permissions": "permissions",
    "/branches": "branches",
    "/compare": "compare",
    "/mcp": "servers",
    "/usage": "usage",
    "/settings": "settings",
}
"""Commands that open a screen: the name of its action."""
ALIASES: Final = {
    "/resume": "/sessions",
    "/approvals": "/inbox",
    "/models": "/model",
    "/theme": "/settings",
    "/config": "/settings",
    "/cost": "/usage",
    "/clear": "/new",
    "/exit": "/quit",
}
"""Names that other assistants have for these commands; they are not listed."""


class Commands:
    """Everything that a person can send from the input of a conversation."""

    def __init__(self, app: CommandHost) -> None:
        self._app = app
        self.completion, self.files = Completion(app), FileCommands(app)

    @property
    def _app_texts(self) -> AppTexts:
        return get_app_texts(self._app.language)

    # Messages ------------------------------------------------------------------------------------------------------

    async def submit(self, text: str, steers: bool = False) -> None:
        """Run a command, or send a message."""
        app = self._app
        word, _, rest = text.strip().partition(" ")
        if text.startswith("/") and "\n" not in text and not steers:
            await self._run_command(word, rest.strip())
        elif text.startswith("!") and len(text.strip()) > 1 and not steers and app.folder is not None:
            await self._run_own(text.strip()[1:].strip(), app.folder.root)
        elif not text.strip() and not app.attached and not app.contexts:
            await self._answer_question()
        else:
            await self._send(replace_surrogates(text.strip()), steers)

    async def _answer_question(self) -> None:
        """Empty Enter: continue after the step limit, carry out an approved plan, or say that nothing was written."""
        app, texts = self._app, get_folder_texts(self._app.language)
        match pending_question(None if app.follower is None else app.follower.state):
            case "step_limit":
                await self._send(texts.carry_on, False)
            case "plan_ready":
                app.mode = "ask" if app.mode == "plan" else app.mode
                await self._send(texts.carry_out, False)
            case _:
                app.show_message(self._app_texts.nothing_said)

    async def _run_own(self, command: str, folder: str) -> None:
        """Run a command of the person; its output goes with the next message."""
        app, texts = self._app, get_folder_texts(self._app.language)
        app.chat_screen.show_own_command(command)
        try:
            output = await run_own_command(command, folder)
        except OSError as error:
            return app.show_message(texts.shell_failed.format(why=error.strerror or error), "error")
        finally:
            app.chat_screen.show_own_command("")
        app.contexts = [*app.contexts, output]
        app.chat_screen.draw()
        return None

    async def _send(self, text: str, steers: bool, typed: str = "") -> None:
        """Send a message; `typed` is what the person wrote for it, if that was a command."""
        app, files, contexts = self._app, list(self._app.attached), list(self._app.contexts)
        app.attached, app.contexts = [], []
        turn = await app.attempt(self._read_and_send(text, files, contexts, steers))
        if turn is None:
            app.attached, app.contexts = files, contexts
            app.chat_screen.composer.write("\n".join(filter(None, (text, app.chat_screen.composer.text))))
            return
        app.editing = ""
        if not app.is_in_memory:
            await asyncio.to_thread(add_to_history, history_path(), typed or text)
        if app.follower is None or app.follower.id != turn.session:
            await app.open_session(turn.session, keeps_text=app.follower is None)
        else:
            app.follower.poll_now()
        app.chat_screen.transcript.scroll_end(animate=False)
        app.chat_screen.draw()

    async def _read_and_send(
        self, text: str, files: list[api.FileView], contexts: list[ContextPart], steers: bool
    ) -> RemoteTurn:
        """Send a message with the resources that it mentions."""
        content = await self._app.mcp_offers.read_mentioned(text)
        return await self._sending(text, [*files, *content.files], [*contexts, *context_parts(content)], steers)

    async def _send_prompt(self, word: str, rest: str) -> bool:
        """Send a prompt of an MCP server; False if there is none of this name."""
        app = self._app
        try:
            content = await app.mcp_offers.get_prompt(word, rest)
        except EverturnError as error:
            app.write_input(f"{word} {rest}".rstrip() + " ")
            app.show_message(str(error), "warning")
            return True
        if content is None:
            return False
        app.attached, app.contexts = [*app.attached, *content.files], [*app.contexts, *context_parts(content)]
        await self._send(replace_surrogates(app.mcp_offers.prompt_message(word, rest)), False, f"{word} {rest}".strip())
        return True

    async def _sending(
        self, text: str, files: list[api.FileView], contexts: list[ContextPart], steers: bool
    ) -> RemoteTurn:
        app = self._app
        follower = app.follower
        if follower is None:
            return await app.server.start_session(
                text,
                files=files,
                contexts=contexts,
                agent=app.agent,
                model=app.model,
                mode=app.mode_to_send(),
                at_step_limit="ask",
            )
        if app.editing:
            return await follower.session.edit(
                app.editing, text, model=app.model, mode=app.mode_to_send(), at_step_limit="ask"
            )
        is_running = follower.state.running is not None
        busy: api.Busy = "steer" if steers and is_running else "queue"
        return await follower.session.send(
            text,
            files=files,
            contexts=contexts,
            model=app.model,
            busy=busy,
            mode=app.mode_to_send(),
            at_step_limit="ask",
        )

    async def _run_command(self, word: str, rest: str) -> None:
        app = self._app
        match word:
            case "/help":
                await app.action_help()
            case "/new":
                await app.action_new()
            case "/quit":
                await app.action_quit()
            case "/again":
                await self.regenerate()
            case "/files" | "/revert":
                await app.action_files()
            case "/context":
                await app.action_context()
            case "/compact":
                await self.compact(replace_surrogates(rest))
            case "/memory":
                await app.action_memory()
            case "/prompt" | "/instructions":
                await self._open_prompts(word, rest)
            case "/model" | "/agent":
                await self._choose(word, rest)
            case "/steer":
                await self._send(replace_surrogates(rest), True)
            case _:
                await self._run_file_command(word, rest)

    async def _run_file_command(self, word: str, rest: str) -> None:
        match word:
            case "/attach":
                await self.files.attach(parse_paths(rest))
            case "/detach":
                self._app.attached = []
            case "/save":
                await self.files.save(rest)
            case "/export":
                await self.files.export(rest)
            case _ if word in SESSION_COMMANDS:
                await run_session_command(self._app, word, rest)
                self._app.chat_screen.draw()
            case "/undo":
                await self.files.undo()
            case "/fork":
                await self.fork()
            case _ if word in SCREEN_COMMANDS:
                await self._app.run_action(SCREEN_COMMANDS[word])
            case _ if use_prompt(self._app, word.removeprefix("/"), rest):
                pass
            case _:
                await self._run_defined_command(word, rest)

    async def _run_defined_command(self, word: str, rest: str) -> None:
        """A command of the folder or of an MCP server, or another name of one of ours."""
        if (text := expand_folder_command(self._app.folder, word, rest)) is not None:
            await self._send(replace_surrogates(text), False, f"{word} {rest}".strip())
        elif await self._send_prompt(word, rest):
            return
        elif word in ALIASES:
            await self._run_command(ALIASES[word], rest)
        else:
            self._refuse_unknown(word, rest)

    def _refuse_unknown(self, word: str, rest: str) -> None:
        texts, near = self._app_texts, get_close_matches(word, [*self.completion.slash_commands(), *ALIASES], 1)
        text = texts.no_command_near.format(name=word, near=near[0]) if near else texts.no_command.format(name=word)
        self._app.show_message(text, "warning")
        composer = self._app.chat_screen.composer
        if not composer.text:  # a letter was wrong: the rest need not be typed again
            composer.write(f"{word} {rest}".strip())

    async def _open_prompts(self, word: str, rest: str) -> None:
        name, _, words = rest.partition(" ")
        if word == "/instructions":
            await self._app.action_prompts("layer:session" if self._app.follower is not None else "layer:user")
        elif not name:
            await self._app.action_prompts()
        elif not use_prompt(self._app, name, words):
            refuse_unknown_prompt(self._app, name)

    # Model and agent ------------------------------------------------------------------------------------------------

    async def _choose(self, word: str, name: str) -> None:
        app, texts = self._app, self._app_texts
        if word == "/model" and self._may_use_any_model() and name not in self.completion.values(word):
            return self.pick_model(name)
        if not name:
            return await app.action_pick()
        known = self.completion.values(word)
        if name not in known:
            text = texts.no_model if word == "/model" else texts.no_agent
            app.show_message(text.format(name=name, known=", ".join(known)), "warning")
        elif word == "/model":
            app.choose(model=name)
        else:
            app.choose(agent=name)
        return None

    def _may_use_any_model(self) -> bool:
        name = self._app.current_agent_and_model()[0]
        return any(view.name == name and view.any_model for view in self._app.agents.agents)

    def pick_model(self, words: str) -> None:
        """Search all models that can be used here, and continue with the one that is chosen."""
        from everturn.terminal.tui.model_picker import ModelPickerScreen

        def picked(name: str | None) -> None:
            if name:
                self._app.choose(model=name)

        current = self._app.current_agent_and_model()[1]
        self._app.push_screen(ModelPickerScreen(self.completion.models(), current, words), picked)

    # The turn ------------------------------------------------------------------------------------------------------

    async def stop(self, is_hard: bool) -> None:
        """Cancel the running turn; with `is_hard` its tools, too."""
        app = self._app
        turn = None if app.follower is None else app.follower.state.running
        if app.follower is None or turn is None:
            return
        await app.attempt(app.follower.session.turn(turn.id).cancel(hard=is_hard))
        app.show_message(self._app_texts.stopped_hard if is_hard else self._app_texts.stopping)

    async def compact(self, focus: str = "") -> None:
        """Summarise the earlier part of the selected branch; Esc stops it."""
        app, texts = self._app, get_context_texts(self._app.language)
        if app.follower is None:
            return app.show_message(texts.nothing_yet)
        turn = await app.attempt(app.follower.session.compact(focus=focus))
        if turn is not None:
            app.follower.poll_now()
            app.run_worker(self._wait_for_summary(turn), exit_on_error=False)
        return None

    async def _wait_for_summary(self, turn: RemoteTurn) -> None:
        """Tell the person if there was nothing to compact; the transcript shows everything else."""
        with suppress(EverturnError):
            result = await turn
            if result.status == "completed" and not result.messages:
                self._app.show_message(get_context_texts(self._app.language).nothing)

    async def take_back(self) -> None:
        """Cancel the last queued message, and put its text back into the input; without one, remove the last attachment."""
        app = self._app
        waiting = [] if app.follower is None else app.follower.state.queued_messages
        if app.follower is None or not waiting:
            if app.contexts:
                app.contexts = app.contexts[:-1]
            else:
                app.attached = app.attached[:-1]
            return app.chat_screen.draw()
        last = waiting[-1]
        await app.attempt(app.follower.session.turn(last.turn).cancel())
        app.follower.poll_now()
        if not app.chat_screen.composer.text:
            app.chat_screen.composer.write(last.text)
        app.show_message(self._app_texts.taken_back)

    async def regenerate(self, message: str = "", model: str = "", after_step: int = 0) -> None:
        """Regenerate the last answer, or the answer to the given message; with `after_step` its first steps stay."""
        app = self._app
        branch = self._branch()
        message_id = message or (branch[-1].id if branch else "")
        if app.follower is None or not message_id:
            return app.show_message(self._app_texts.nothing_to_edit)
        rerun = app.follower.session.rerun
        model, mode = model or app.model, app.mode_to_send()
        await app.attempt(rerun(message_id, model=model, mode=mode, at_step_limit="ask", after_step=after_step))
        return None

    def edit_last(self) -> None:
        """Edit the last message of the person."""
        sent = [message for message in self._branch() if message.role == "user"]
        if sent:
            self.edit(sent[-1])
        else:
            self._app.show_message(self._app_texts.nothing_to_edit)

    def edit(self, message: Message) -> None:
        """Put a message into the input, to edit it."""
        app = self._app
        app.editing = message.id
        app.chat_screen.composer.write(message.text)
        app.chat_screen.composer.text_area.focus()
        app.chat_screen.draw()

    def leave_edit(self) -> None:
        """Cancel the edit."""
        self._app.editing = ""
        self._app.chat_screen.composer.write("")
        self._app.chat_screen.draw()

    def _branch(self) -> list[Message]:
        return [] if self._app.follower is None else self._app.follower.state.branch()

    async def fork(self) -> None:
        """Continue in a copy of this session; the original stays as it is."""
        app, texts = self._app, get_folder_texts(self._app.language)
        if app.follower is None:
            return app.show_message(texts.nothing_to_fork)
        data = await app.attempt(app.follower.session.export())
        copied = None if data is None else await app.attempt(app.server.import_session(data))
        if copied is not None:
            if title := app.follower.state.tree.title:  # two sessions of one title cannot be told apart in a list
                await app.attempt(app.server.session(copied.id).update(title=texts.copy_of.format(title=title)))
            await app.open_session(copied.id)
            app.show_message(texts.forked)
        return None
