"""Seeded bugs in the server, who may come in, its protocols, its configuration and its client; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DOOR = "tests/access/test_authentication.py::"
FOREIGN = "tests/access/test_tenant_isolation.py::"
GATES = "tests/access/test_gates.py::"
FILES = "tests/access/test_files.py::"
OIDC = "tests/access/test_oidc.py::"
TALKING = "tests/access/test_sessions.py::"
ACCOUNTS = "tests/stores/test_accounts.py::"
APP = "tests/server/test_app.py::"
STREAMS = "tests/server/test_streams.py::"
FOLLOWING = "tests/core/test_session_reader.py::"
RESPONSES = "tests/protocols/test_responses.py::"
CONFIG = "tests/config/test_build.py::"
SPANS = "tests/telemetry/test_spans.py::"
CLIENT = "tests/client/test_client_mutants.py::"
HOLDING = "tests/access/test_attacks.py::"
BODIES = "tests/server/test_body_limits.py::"

ACCESS_MUTANTS = [
    Mutant(
        "a private session is everybody's",
        "access/context/scope.py",
        '        if root.by in reader.creators:\n            return "manage"\n',
        '        return "manage"\n',
        "tests/security/test_private_conversations.py::test_every_route_shows_as_much_as_the_relation_to_the_conversation_allows",
    ),
    Mutant(
        "the role that a method takes is only written down",
        "access/context/roles.py",
        "            require_role(self.scope.principal, role)\n",
        "",
        f"{FOREIGN}test_a_role_that_is_not_enough_is_refused_before_anything_is_looked_at[sessions.erase]",
    ),
    Mutant(
        "a gate of another session is answered by its id",
        "access/gates.py",
        "below = await self.scope.store.gate_page(session, tenant=self.scope.principal.tenant, limit=None)",
        "below = await self.scope.store.gate_page(tenant=self.scope.principal.tenant, limit=None)",
        f"{FOREIGN}test_an_id_of_another_session_is_an_absent_one",
    ),
    Mutant(
        "the hash of a hidden result is shown, and can be tried against",
        "access/context/role_redaction.py",
        'output=None, hash="", preview=""',
        'output=None, preview=""',
        f"{GATES}test_a_result_that_is_reviewed_is_for_approvers_also_when_it_was_withheld",
    ),
    Mutant(
        "an answer is good for whatever the gate shows by now",
        "access/gates.py",
        "if not hmac.compare_digest(found.hash.encode(), hash.encode()):",
        "if False:",
        f"{GATES}test_an_answer_is_for_the_bytes_that_were_shown",
    ),
    Mutant(
        "a member approves",
        "access/gates.py",
        "self.scope.require_role(*_takes(found, answered))",
        "pass",
        f"{GATES}test_an_answer_takes_the_role_for_its_kind[a call]",
    ),
    Mutant(
        "whoever knows the hash of a blob reads it in any session",
        "access/conversations/files.py",
        "if not is_there or (self.scope.is_redacted",
        "if (self.scope.is_redacted",
        f"{FILES}test_a_blob_is_read_only_where_the_session_speaks_of_it",
    ),
    Mutant(
        "the signature of a handle is not looked at",
        "access/conversations/upload_handles.py",
        "if not hmac.compare_digest(signature, _mac(secret, tenant, part)) or handle != encode_handle(secret, tenant, part):",
        "if False:",
        f"{FILES}test_a_handle_that_was_changed_anywhere_is_none",
    ),
    Mutant(
        "a client names any model, and where it is",
        "access/conversations/turn_options.py",
        "    if model not in names and not agent.any_model:",
        "    if False:",
        f"{TALKING}test_a_client_cannot_choose[a model of a vendor with an address]",
    ),
    Mutant(
        "requests are counted and never used up",
        "access/context/quotas.py",
        "        bucket.level -= 1.0\n",
        "",
        f"{TALKING}test_requests_are_counted_for_a_tenant_and_come_back_with_time",
    ),
    Mutant(
        "the cookie of a login is a key, too",
        "access/auth/authentication.py",
        "known.credential.kind != kind",
        "False",
        f"{DOOR}test_nothing_and_everything_that_is_no_credential_is_refused_in_the_same_words",
    ),
    Mutant(
        "a key does all that its user may",
        "core/tenants/accounts.py",
        "lower_role(credential.role, user.role),",
        "user.role,",
        f"{DOOR}test_a_role_is_capped_by_the_credential_whatever_carries_it",
    ),
    Mutant(
        "a key that was revoked opens the door",
        "core/tenants/accounts.py",
        "is_over = bool(credential.revoked) or (",
        "is_over = (",
        f"{DOOR}test_what_holds_no_more_is_refused_two_seconds_later_at_the_latest",
    ),
    Mutant(
        "the streams of somebody who may do less now go on",
        "access/auth/authentication.py",
        " or not is_at_least(now_held.role, principal.role)",
        "",
        f"{DOOR}test_whoever_may_do_less_now_loses_what_is_open",
    ),
    Mutant(
        "a token says by which algorithm it is to be believed",
        "access/auth/oidc.py",
        "if algorithm not in self.options.algorithms or algorithm not in SIGNED:",
        "if False:",
        f"{OIDC}test_a_good_key_with_an_algorithm_that_is_not_configured_is_refused",
    ),
    Mutant(
        "a token is good for ever",
        "access/auth/oidc.py",
        "        self._check_times(claims)\n",
        "",
        f"{OIDC}test_a_forged_token_is_refused[a past end]",
    ),
    Mutant(
        "whoever is called like a user of ours at the provider is that user",
        "access/auth/oidc_claims.py",
        "bool(options.issuer) and user.origin == options.issuer",
        "True",
        f"{OIDC}test_a_token_speaks_of_nobody_who_was_not_made_by_its_issuer",
    ),
    Mutant(
        "a record of what was done does not cover the one before",
        "core/tenants/accounts.py",
        "(before.n + 1, before.hash)",
        '(before.n + 1, "")',
        "tests/core/test_accounts_mutants.py::"
        "test_a_record_that_was_written_anew_with_its_hash_is_seen_by_the_one_behind_it",
    ),
    Mutant(
        "a link in a database logs in as often as it is opened",
        "stores/sql/accounts.py",
        "AND kind = 'link' AND revoked = 0",
        "AND kind = 'link'",
        f"{ACCOUNTS}TestSqliteAccounts::test_of_fifty_who_use_a_link_at_once_one_has_it",
    ),
    Mutant(
        "a tenant revokes the keys of another",
        "stores/sql/accounts.py",
        "WHERE tenant = ?1 AND id = ?2 AND revoked = 0",
        "WHERE ?1 = ?1 AND id = ?2 AND revoked = 0",
        f"{ACCOUNTS}TestSqliteAccounts::test_a_credential_is_revoked_once_and_by_its_own_tenant",
    ),
    Mutant(
        "the name of a tenant ends the text it stands in",
        "stores/sql/row_security.py",
        """.replace("'", "''")""",
        "",
        "tests/stores/test_row_security_mutants.py::test_the_name_of_a_tenant_is_never_read_as_a_command",
    ),
]

SERVER_MUTANTS = [
    Mutant(
        "a name that was bent to our address is served",
        "server/middleware.py",
        'if not self._names.is_allowed(host, scope.get("server")):',
        "if False:",
        "tests/server/test_middleware.py::test_a_name_that_is_none_of_ours_is_refused_everywhere[/api/me-evil.example:8000]",
    ),
    Mutant(
        "a cookie alone changes something",
        "server/app.py",
        "if not await self.authenticator.is_csrf(",
        "if False and not await self.authenticator.is_csrf(",
        f"{APP}test_a_cookie_changes_something_only_with_its_token",
    ),
    Mutant(
        "a body that does not say its length has none",
        "server/body_limits.py",
        "if size > limit:",
        "if False:",
        f"{APP}test_a_body_that_is_too_large_is_refused_with_and_without_its_length",
    ),
    Mutant(
        "a connection that says nothing stays",
        "server/connections.py",
        "            return\n        self._arm()",
        "            return",
        "tests/server/test_connections.py::test_whoever_takes_their_time_is_sent_away[silent-]",
    ),
    Mutant(
        "whoever comes back to a stream has seen all of a step that streams",
        "server/streams/sse.py",
        "return encode_message(item, str(self.reader.cursor))",
        "return encode_message(item, str(self.reader.seq))",
        f"{STREAMS}test_a_page_that_is_cut_off_again_and_again_ends_with_every_character_once",
    ),
    Mutant(
        "a stream shows results that wait for a review",
        "server/streams/sse.py",
        "if self._redact is not None and isinstance(shown, Event):",
        "if False:",
        f"{STREAMS}test_a_result_that_waits_for_a_review_is_shown_to_those_who_may_judge_it",
    ),
    Mutant(
        "the stream of a turn has what tools of another say",
        "server/streams/sse.py",
        "if self.turn and item.turn != self.turn:",
        "if False:",
        "tests/server/test_sse_mutants.py::test_what_a_tool_of_another_turn_says_of_itself_is_not_shown",
    ),
    Mutant(
        "when one key is revoked all streams end",
        "server/streams/registry.py",
        "if stream.principal.credential in invalid]",
        "]",
        f"{STREAMS}test_a_credential_that_is_revoked_ends_its_streams_and_no_others",
    ),
    Mutant(
        "the inbox shows results that wait for a review",
        "server/streams/inbox.py",
        "redacted_frame if is_redacted else whole",
        "whole",
        "tests/server/test_streams_inbox.py::test_what_happens_on_one_node_is_told_on_another",
    ),
    Mutant(
        "a cursor knows its steps from one position too late",
        "core/projections/session_reader.py",
        "min((start - 1 for start in self._named)",
        "min((start for start in self._named)",
        f"{FOLLOWING}test_however_the_line_breaks_every_character_of_every_branch_is_shown_once",
    ),
    Mutant(
        "pieces of two parts are merged into one",
        "core/projections/session_reader.py",
        "key = (item.turn, item.seq, item.part)",
        "key = (item.turn, item.seq, 0)",
        f"{FOLLOWING}test_pieces_of_two_branches_are_merged_each_for_itself",
    ),
]

PROTOCOL_MUTANTS = [
    Mutant(
        "the event whose number is brought back is said again",
        "protocols/responses.py",
        "if number <= self._after:",
        "if number < self._after:",
        f"{RESPONSES}test_after_any_number_comes_what_has_a_higher_one",
    ),
    Mutant(
        "numbers are counted and not read off the log",
        "protocols/responses.py",
        "end = base + 1 + min(delta.offset + len(delta.text), PART_NUMBERS - 2)",
        "end = base + 2 + len(item.pieces)",
        f"{RESPONSES}test_after_any_number_comes_what_has_a_higher_one",
    ),
    Mutant(
        "an approval is good for every call of its tool",
        "protocols/openai_common.py",
        "[session, gate.turn, gate.id, gate.call, gate.hash]",
        "[gate.tool]",
        "tests/protocols/test_responses_client.py::test_an_approval_is_good_for_the_gate_that_was_shown_and_no_other",
    ),
    Mutant(
        "a conversation is known again for somebody else",
        "server/protocols/openai/schema.py",
        '["conversation", user, ',
        '["conversation", "", ',
        "tests/protocols/test_completions_client.py::"
        "test_what_one_user_said_is_not_known_again_for_another_or_for_another_tenant",
    ),
    Mutant(
        "a client begins to run its tool before it may",
        "protocols/ai_sdk.py",
        "if self._names.get(event.call) in self._clients:",
        "if False:",
        "tests/protocols/test_ai_sdk.py::test_who_runs_a_call_is_said_when_it_runs_and_a_client_begins_nothing_before",
    ),
    Mutant(
        "an approval in the history of a client is an answer",
        "server/protocols/ai_sdk/routes.py",
        ' and part.state == "approval-responded"',
        "",
        "tests/protocols/test_ai_sdk_server.py::test_an_approval_in_a_state_that_is_no_answer_is_none",
    ),
    Mutant(
        "whatever is not false is a yes",
        "server/protocols/ag_ui.py",
        'answer.get("approved") is not True',
        'not answer.get("approved")',
        "tests/protocols/test_ag_ui_server.py::test_only_a_clear_yes_is_a_yes",
    ),
    Mutant(
        "whatever is not false approves in A2A",
        "server/protocols/a2a.py",
        'data.get("approved") is True',
        'data.get("approved")',
        "tests/protocols/test_a2a_client.py::test_a_text_or_anything_but_true_approves_nothing",
    ),
]

AROUND_MUTANTS = [
    Mutant(
        "a secret is shown where values are listed",
        "config/secrets.py",
        """return "'***'\"""",
        "return str.__repr__(self)",
        "tests/config/test_errors.py::test_a_secret_that_was_read_is_not_shown_by_accident",
    ),
    Mutant(
        "a later file takes rules away",
        "config/layers.py",
        'if key == "permissions" and',
        "if False and",
        "tests/config/test_layers.py::test_rules_of_all_layers_hold_together",
    ),
    Mutant(
        "a rule that denies holds from the next start on",
        "config/reload.py",
        "        self._app.permissions.replace(new.rules)\n        if self._context",
        "        if self._context",
        f"{CONFIG}test_a_rule_that_denies_holds_in_a_turn_that_waits",
    ),
    Mutant(
        "tools read the configuration",
        "config/tools.py",
        "kept = PROTECTED.adding(",
        "kept = PROTECTED or PROTECTED.adding(",
        f"{CONFIG}test_files_of_a_folder_keep_the_configuration_to_itself",
    ),
    Mutant(
        "every process makes spans of its own",
        "telemetry/ids.py",
        'return _number(8, "span", session, turn, kind, name)',
        'return hash((object(), "span", session, turn, kind, name)) & (2**63 - 1)',
        f"{SPANS}test_wherever_a_log_is_cut_in_two_both_pieces_make_the_spans_of_the_whole[plain]",
    ),
    Mutant(
        "what people say is in spans though nobody asked for it",
        "telemetry/spans.py",
        "if self._content and event.input is not None:",
        "if event.input is not None:",
        f"{SPANS}test_without_content_no_span_holds_a_word_that_was_said[plain]",
    ),
    Mutant(
        "a label says whose something is",
        "telemetry/metric_families.py",
        '"Turns ended.", "outcome"',
        '"Turns ended.", "tenant"',
        "tests/telemetry/test_metrics.py::test_no_label_says_whose_something_is",
    ),
    Mutant(
        "our own keys are in the log",
        "telemetry/redact.py",
        r"\bev[a-z]{1,2}_[A-Za-z0-9_-]{8,}",
        r"\bevx_[A-Za-z0-9_-]{8,}",
        "tests/telemetry/test_logs.py::test_what_lets_somebody_in_is_on_no_line",
    ),
    Mutant(
        "a client does not remember where its stream was",
        "client/event_stream.py",
        "self.cursor = name",
        "pass",
        f"{CLIENT}test_a_turn_over_a_line_that_breaks_again_and_again_is_shown_once",
    ),
    Mutant(
        "a message whose answer was lost is sent as another one",
        "client/turn.py",
        'key = key or f"cli_{secrets.token_hex(16)}"',
        'key = key or ""',
        f"{CLIENT}test_a_message_whose_answer_is_lost_is_sent_again_and_is_one",
    ),
    Mutant(
        "a client does twice what may be done once",
        "client/http.py",
        "if not may_repeat and not isinstance(",
        "if False and not isinstance(",
        f"{CLIENT}test_what_would_be_done_twice_is_not_sent_again",
    ),
]

# What people found who attacked it; each was there once.
ATTACKED_MUTANTS = [
    Mutant(
        "a token of a provider makes an operator",
        "access/auth/oidc_claims.py",
        "return lower_role(found[0].role, MAX_TOKEN_ROLE)",
        "return found[0].role",
        f"{OIDC}test_a_token_makes_nobody_an_operator",
    ),
    Mutant(
        "a stranger fills the node with a body",
        "server/body_limits.py",
        "limit = limit if tenant else anonymous or min(limit, ANONYMOUS_BODY_LIMIT)",
        "pass",
        f"{BODIES}test_of_an_unknown_client_hardly_anything_is_read",
    ),
    Mutant(
        "one tenant has all the place that there is for bodies",
        "server/body_limits.py",
        " or self._per_tenant[tenant] > max(TENANT_MEMORY_LIMIT, most)",
        "",
        f"{BODIES}test_a_tenant_has_its_share_and_no_more_unless_a_single_body_may_be_longer",
    ),
    Mutant(
        "what a file says was used is on the account of whoever brings it in",
        "stores/memory_usage.py",
        "if used is None or is_restored:",
        "if used is None:",
        "tests/access/test_imported.py::test_what_it_says_was_used_is_on_nobodys_account[memory]",
    ),
    Mutant(
        "a folder is reverted to what a file says it was",
        "stores/import_sanitize.py",
        'yield replace(event, before="", after="")',
        "yield event",
        "tests/access/test_imported.py::test_no_folder_is_reverted_to_what_a_file_says_it_was[6ef19b41]",
    ),
    Mutant(
        "a session from the future stands first for ever",
        "stores/import_sanitize.py",
        "return event if 0 <= event.at <= now else",
        "return event if True else",
        "tests/access/test_imported.py::test_times_to_come_and_names_of_others_are_not_believed",
    ),
    Mutant(
        "turns that were begun before the last look are not counted",
        "access/context/quotas.py",
        "look.turns + look.started >= limits.turns",
        "look.started >= limits.turns",
        f"{HOLDING}test_turns_beside_each_other_in_one_session_are_counted_one_by_one[memory]",
    ),
    Mutant(
        "whoever asks all at once passes the budget",
        "access/context/quotas.py",
        "look.spent + Spent(look.started + look.requests)",
        "look.spent",
        f"{HOLDING}test_a_budget_is_not_passed_by_asking_all_at_once",
    ),
    Mutant(
        "a member guesses a hidden result by its hash",
        "access/gates.py",
        "self.scope.require_role(*_takes(found, answered))",
        "self.scope.require_role(*_takes(found, answered)) if found.hash == hash else None",
        f"{HOLDING}test_whoever_may_not_answer_learns_nothing_of_a_hash",
    ),
    Mutant(
        "a hidden result is read in the session of the sub-agent run that made it",
        "access/context/scope.py",
        "while found.parent and self.is_redacted:",
        "while False:",
        f"{HOLDING}test_what_a_sub_turn_said_is_for_approvers_until_its_call_was_let_through[withhold]",
    ),
    Mutant(
        "rules are gone while their file is being moved",
        "config/reload.py",
        "            _check_files(self.files, new)\n",
        "",
        "tests/config/test_long_running.py::test_a_file_that_moves_away_for_a_moment_takes_no_rule_with_it",
    ),
]

SERVED_MUTANTS = [*ACCESS_MUTANTS, *SERVER_MUTANTS, *PROTOCOL_MUTANTS, *AROUND_MUTANTS, *ATTACKED_MUTANTS]
