"""Seeded bugs in agents: typed output, dependencies, handoffs and sub-agents; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

RUN, CRASH, TREES = "tests/agents/test_run.py::", "tests/agents/test_crash.py::", "tests/agents/test_trees.py::"
LIMITS = "tests/agents/test_limits.py::"
ENDS = f"{CRASH}test_a_run_with_a_sub_agent_a_handoff_and_a_wrong_answer_ends_the_same_wherever_it_was_stopped"
FILE = "tests/config/test_agents.py::"
SAME = f"{FILE}test_an_agent_defined_in_three_ways_has_the_same_options_and_sends_the_same_bytes"
SENT_BACK = f"{RUN}test_a_wrong_answer_is_sent_back_and_is_not_in_the_conversation"

SESSION, ALWAYS = "tests/agents/test_session_agent.py::", "tests/agents/test_always.py::"

AGENT_MUTANTS = [
    Mutant(
        "a message goes to the agent that it was sent to, whoever has the session",
        "driver/commands.py",
        'if command.base is None or info.agent in ("", command.options.agent):',
        "if True:",
        f"{SESSION}test_a_message_that_waits_while_its_turn_is_handed_over_goes_to_the_new_agent",
    ),
    Mutant(
        "a handoff ends with its turn",
        "core/tree.py",
        "        AgentSwitched: _hand_over,\n",
        "",
        f"{SESSION}test_a_handoff_lasts_for_the_turns_after_it",
    ),
    Mutant(
        "a person's handoff is carried out under a turn that has begun",
        "driver/commands.py",
        "        if self._ledger.turns:  # it began after admission; its agent may still hand over to another one\n",
        "        if False:\n",
        f"{SESSION}test_a_turn_that_begins_before_the_session_is_handed_over_refuses_it",
    ),
    Mutant(
        "the agent of a restored session is not that of its log",
        "stores/sql/append.py",
        "remove_nul(tree.title), remove_nul(tree.agent), session",
        'remove_nul(tree.title), "", session',
        f"{SESSION}test_an_exported_session_is_imported_with_its_agent",
    ),
    Mutant(
        "a session does not say which agent it waits for",
        "driver/driver.py",
        "await self._setup.store.release(session, claim.epoch, awaited_agent=names)",
        "await self._setup.store.release(session, claim.epoch)",
        f"{SESSION}test_a_turn_of_an_agent_that_a_process_does_not_know_is_shown_by_ps",
    ),
    Mutant(
        "an approval for one user holds for all",
        "driver/wider_answers.py",
        'if is_for_user or resolution.within == "user" else ""',
        'if is_for_user else ""',
        f"{ALWAYS}test_an_approval_holds_in_its_scope_and_nowhere_else",
    ),
    Mutant(
        "an approval for one folder holds in all",
        "running/permissions.py",
        'or grant.folder not in ("", folder)',
        "",
        f"{ALWAYS}test_an_approval_holds_in_its_scope_and_nowhere_else",
    ),
    Mutant(
        "an agent that can use none of its tools is made",
        "agents/denied_tools.py",
        "    if known and not allowed:\n",
        "    if False:\n",
        "tests/agents/test_denied_tools.py::test_an_agent_whose_rules_deny_all_its_tools_is_refused_when_it_is_made",
    ),
    Mutant(
        "a step that was offered nothing does not say so",
        "turn/loop.py",
        "(run.warning, cut_off, loop)",
        "(cut_off, loop)",
        "tests/agents/test_denied_tools.py::test_a_run_that_was_offered_none_of_its_tools_has_a_warning",
    ),
    Mutant(
        "a sub-agent is judged without the rules above it",
        "calls/subagents.py",
        "return tuple(replace(parent, tools=None) for parent in ancestors) if ask.agent else ancestors",
        "return () if ask.agent else ancestors",
        f"{TREES}test_no_agent_of_a_tree_reaches_what_is_denied_above_it",
    ),
    Mutant(
        "a sub-agent whose tools are all denied runs without any",
        "plugins/tool_calling.py",
        "if options.lineage is not None and options.needs_agent and not names:",
        "if False:",
        f"{RUN}test_a_sub_agent_without_any_allowed_tool_fails_its_call_with_the_reason",
    ),
    Mutant(
        "a handoff whose process died before the switch is forgotten",
        "calls/pipeline.py",
        "            await _complete_handoff(ctx)\n",
        "",
        ENDS,
    ),
    Mutant(
        "a step that is repeated after a crash counts as another attempt",
        "turn/typed_output.py",
        "len(run.state.rejected.keys() - {finished.step}) + 1",
        "len(run.state.rejected) + 1",
        ENDS,
    ),
    Mutant(
        "a wrong answer stays in the conversation",
        "turn/typed_output.py",
        "return [rejected, replace(finished, parts=())]",
        "return [rejected, finished]",
        SENT_BACK,
    ),
    Mutant(
        "the model is not told what was wrong with its answer",
        "turn/request.py",
        "render_own_message(message, parts, run.state.rejected)",
        "render_own_message(message, parts)",
        SENT_BACK,
    ),
    Mutant(
        "dependencies are not closed",
        "turn/loop.py",
        "        await run.release_dependencies()\n",
        "",
        f"{RUN}test_dependencies_are_made_for_the_turn_and_closed_after_it",
    ),
    Mutant(
        "a process drives a turn of an agent that it does not know",
        "base_app/app.py",
        "return None if options.needs_agent else self._setup",
        "return self._setup",
        f"{RUN}test_a_process_that_does_not_know_an_agent_leaves_its_turn_to_one_that_does",
    ),
    Mutant(
        "a run that is resolved is taken for one that still waits",
        "chat/turn.py",
        "if not is_waiting(turn_state) or any(name not in unanswered for name in open_gates):",
        "if False:",
        f"{RUN}test_another_process_resolves_what_a_run_waits_for",
    ),
    Mutant(
        "an agent's budget takes the place of the caller's",
        "agents/definition.py",
        'arguments["budget"].narrowed(base.budget)',
        'arguments["budget"]',
        f"{LIMITS}test_the_stricter_of_caller_and_agent_holds",
    ),
    Mutant(
        "the agent that takes a turn over has the other's selection of tools",
        "calls/execute.py",
        "replace(run.state.options, tools=None)",
        "run.state.options",
        f"{LIMITS}test_a_handoff_widens_no_limit_and_keeps_no_selection_of_tools",
    ),
    Mutant(
        "a command of an agent's own tool is allowed to every user",
        "driver/wider_answers.py",
        "setup.for_turn(state.options).app.find_tool(gate.tool)\n    is_for_user = tool is None or",
        "setup.app.find_tool(gate.tool)\n    is_for_user = tool is not None and",
        f"{LIMITS}test_a_command_that_is_always_allowed_is_allowed_to_its_user_alone",
    ),
    Mutant(
        "edited arguments are checked by another agent's tool of the same name",
        "base_app/app.py",
        "return next(same, found[0] if found else None)",
        "return found[0] if found else None",
        f"{LIMITS}test_edited_arguments_are_checked_by_the_tool_of_the_agent_that_asks",
    ),
    Mutant(
        "a chat completion streams an answer that may be rejected",
        "protocols/chat_completions.py",
        'return b"" if self._holds_text else self._chunk({"content": text})',
        'return self._chunk({"content": text})',
        "tests/protocols/test_rejected_output.py::test_chat_completions",
    ),
    Mutant(
        "an agent with tools of its own does not see tools that are added later",
        "tools/registry.py",
        "        other._includers.add(self)\n",
        "",
        f"{FILE}test_an_agent_with_a_handoff_sees_tools_that_are_added_later",
    ),
    Mutant(
        "the turns of an agent that is gone are left alone",
        "agents/agent_registry.py",
        "return self._removed.get(options.agent) if options.needs_agent else None",
        "return None",
        f"{FILE}test_a_reload_replaces_agents_keeps_those_that_are_the_same_and_finishes_the_turns_of_those_that_are_gone",
    ),
    Mutant(
        "a reload keeps an agent whose sub-agent has changed",
        "config/agents.py",
        "and all(map(is_unchanged, after[name].subagents))",
        "",
        f"{FILE}test_a_reload_replaces_agents_keeps_those_that_are_the_same_and_finishes_the_turns_of_those_that_are_gone",
    ),
    Mutant(
        "everybody is shown the instructions of agents",
        "access/access.py",
        'self.principal.role == "operator" and agent.definition',
        "agent.definition",
        SAME,
    ),
    Mutant(
        "an agent of a file loses its functions of each step",
        "config/agents.py",
        "            agent.instructions(function, each_step=True)",
        "            pass",
        SAME,
    ),
    Mutant(
        "a reasoning effort is sent as it is written",
        "models/formats/params.py",
        "    merged = write_reasoning(merged, profile)\n",
        "",
        "tests/models/test_reasoning.py::test_the_strict_provider_accepts_an_effort",
    ),
    Mutant(
        "an output is not checked against its JSON Schema",
        "agents/output_type.py",
        "if self._has_schema and (violations :=",
        "if False and (violations :=",
        f"{FILE}test_an_output_type_may_be_a_json_schema",
    ),
    Mutant(
        "an argument that is passed on is not JSON",
        "calls/results.py",
        "return value if isinstance(value, str) else encode_canonical(value)",
        "return str(value)",
        "tests/turn/test_references.py::test_a_reference_is_an_argument_of_an_earlier_call_whatever_came_of_it",
    ),
]
