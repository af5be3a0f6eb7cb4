"""Workflows: durable functions that code starts, without a model (`@app.workflow`).

A workflow is a tool in a turn of its own session, called by a built-in model that makes one call. So it has everything a
tool has (steps, timers, external results, questions, nested calls, sub-agents), and every client can show it. It is run
again from its beginning after a crash, and its steps are not repeated (`idempotent` and `resumable`).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, Protocol

import msgspec

from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.commands import AnyCommand, Cancel, Send
from everturn.core.deltas import TurnItem, TurnReader
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, TextPart
from everturn.core.ports import Clock, IdSource
from everturn.core.state import fold
from everturn.core.store_ports import Receipt, Store
from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.errors import ConfigError, TurnError
from everturn.tools.function import FunctionTool

WORKFLOWS: Final = "workflows"  # the group of their tools, which no other turn has
TIMEOUT: Final = 86_400.0  # seconds that a workflow may run without waiting
CANCELLED: Final = "the workflow was cancelled"
ENDED: Final = "the turn of the workflow ended without a result"


class WorkflowHost(Protocol):
    """The part of `App` that starts and follows workflows."""

    clock: Clock
    ids: IdSource

    @property
    def store(self) -> Store: ...

    async def command(self, command: AnyCommand) -> Receipt: ...

    def follow(self, session: str, reader: TurnReader) -> AsyncGenerator[TurnItem, None]: ...


class WorkflowRun:
    """A started workflow. It may be forgotten: the workflow continues, and `workflow.run(session, turn)` finds it again."""

    def __init__(self, app: WorkflowHost, session: str, turn: str, tenant: str) -> None:
        self._app, self.session, self.turn, self.tenant = app, session, turn, tenant

    @property
    def id(self) -> str:
        """The id of its turn, for `app.turn`, whose result lists the open gates."""
        return f"{self.session}/{self.turn}"

    async def result(self) -> Any:
        """Wait until the workflow has ended, and return the JSON value that its function returned.

        Raises:
            TurnError: the workflow failed or was cancelled, or its outcome is not known; `kind` says which.
        """
        async for _ in self._app.follow(self.session, TurnReader(self.turn)):
            pass
        state = fold(entry.event for entry in await self._app.store.events(self.session, turn=self.turn))
        call = next((call for call in state.calls.values() if not call.parent), None)
        if call is None or call.output is None:
            problem = state.ending.problem if state.ending is not None else None
            raise TurnError(problem.text if problem else ENDED, problem.kind if problem else "error")
        if call.state != "completed":
            raise TurnError(call.output.text or CANCELLED, call.output.code or call.state)
        with blobs_of_tenant(self.tenant):
            data = await self._app.store.blob(call.output.blob) if call.output.blob else call.output.text.encode()
        return msgspec.json.decode(data)

    async def cancel(self, *, hard: bool = False) -> None:
        """Cancel the workflow; `hard` also stops a step that is running."""
        key, now = self._app.ids.new("cmd"), self._app.clock.now()
        await self._app.command(
            Cancel(key=key, session=self.session, tenant=self.tenant, at=now, turn=self.turn, hard=hard)
        )


class Workflow:
    """A function that `@app.workflow` made durable: `await workflow.start(…)`."""

    def __init__(self, app: WorkflowHost, function: Callable[..., Any], name: str, model: str) -> None:
        if not inspect.iscoroutinefunction(function):
            raise ConfigError(f"workflow {name!r}: make it an `async def` whose first parameter is ctx: ToolContext")
        self.name, self._app, self._model = name, app, model
        self.tool = FunctionTool(
            function, name=name, idempotent=True, resumable=True, timeout=TIMEOUT, to_model=_encode_result
        )
        if self.tool.context_parameter is None:
            raise ConfigError(f"workflow {name!r}: its first parameter is ctx: ToolContext")
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name != self.tool.context_parameter]
        self._signature = signature.replace(parameters=parameters)

    async def start(self, *args: Any, key: str = "", tenant: str = LOCAL, **kwargs: Any) -> WorkflowRun:
        """Start the workflow with these arguments, which must be JSON. The same `key` always returns the same run.

        Raises:
            BadArguments: the arguments do not fit the function.
            KeyConflict: the key was used before, with other arguments.
        """
        try:
            arguments = dict(self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise ConfigError(f"workflow {self.name!r}: {error}") from None
        self.tool.validate(arguments)
        ids = self._app.ids
        session = f"workflow-{self.name}-{hash_values(key)[:32]}" if key else ids.new("session")
        text = encode_canonical({"workflow": self.name, "arguments": arguments})
        receipt = await self._app.command(
            Send(
                key=key or ids.new("cmd"),
                session=session,
                tenant=tenant,
                at=self._app.clock.now(),
                turn=ids.new("turn"),
                message=ids.new("msg"),
                parts=(TextPart(text),),
                at_leaf=True,
                options=TurnOptions(model=self._model, tools=("*", f"@{WORKFLOWS}/{self.name}"), max_steps=2),
            )
        )
        assert isinstance(receipt.command, Send)
        return WorkflowRun(self._app, session, receipt.command.turn, tenant)

    def run(self, session: str, turn: str, tenant: str = LOCAL) -> WorkflowRun:
        """A run that was started before, by its ids: from this process or another."""
        return WorkflowRun(self._app, session, turn, tenant)


def _encode_result(value: Any) -> Output:
    """A result as JSON: text has its quotes, so that `result()` returns what the function returned."""
    return Output(msgspec.json.encode(value).decode())
