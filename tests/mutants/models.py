"""Seeded bugs in models and their transport; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SSE = "tests/transport/test_sse.py::"
QUIRK = "tests/models/test_quirks.py::test_a_server_with_a_quirk_is_understood"
REQUESTS = "tests/models/test_requests.py::"
RETRYING = "tests/models/test_retry.py::"
NAMED = "tests/models/test_registry.py::"
TOLD = "tests/turn/test_crash.py::test_a_story_told_twice_leaves_the_same_log"

MODEL_MUTANTS = [
    Mutant(
        "a CRLF that is split counts twice",
        "transport/sse.py",
        'self._held = b"\\r" if data.endswith(b"\\r") else b""',
        'self._held = b""',
        f"{SSE}test_three_things_end_a_line",
    ),
    Mutant(
        "the end of an event is not seen where it is split",
        "transport/sse.py",
        "at = len(rest) - 1  #",
        "at = len(rest)  #",
        f"{SSE}test_three_things_end_a_line",
    ),
    Mutant(
        "a line may be as long as it likes while it lasts",
        "transport/sse.py",
        "or self._line > limits.line or",
        "or",
        f"{SSE}test_a_line_that_does_not_end_is_given_up_at_its_limit",
    ),
    Mutant(
        "U+0085 ends a line",
        "transport/sse.py",
        'data = b"\\n".join(_DATA.findall(event))',
        'data = b"\\n".join(l[5:].strip() for l in event.decode("utf-8", "replace").splitlines()).encode()',
        f"{SSE}test_a_line_is_read_as_the_specification_says",
    ),
    Mutant(
        "calls with one index are one call",
        "models/formats/call_slots.py",
        "if id and call.id:",
        "if False:",
        f"{QUIRK}[11_ollama_all_index0_distinct_ids]",
    ),
    Mutant(
        "whole calls without an id are one call",
        "models/formats/call_slots.py",
        "if may_begin and not id",
        "if False and not id",
        f"{QUIRK}[44_same_name_no_id_no_index_twice]",
    ),
    Mutant(
        "a stream that breaks off is taken for an answer",
        "models/formats/chat_stream.py",
        "            raise truncated_error()",
        '            self._finish = "stop"',
        f"{QUIRK}[25_eof_without_finish]",
    ),
    Mutant(
        "an error in the stream is overlooked",
        "models/formats/chat_stream.py",
        "        if event.error:\n",
        "        if False:\n",
        "tests/models/test_hostile.py::test_an_error_in_the_middle_may_have_any_code",
    ),
    Mutant(
        "a thought is told twice where two fields hold it",
        "models/formats/chat_stream.py",
        "text = delta.reasoning_content or delta.reasoning",
        'text = (delta.reasoning_content or "") + (delta.reasoning or "")',
        f"{QUIRK}[19_reasoning_mirrored_in_both]",
    ),
    Mutant(
        "half a tag is text",
        "models/formats/think_tags.py",
        "if not any(tag.startswith(start) for tag in _OPEN):",
        "if True:",
        f"{QUIRK}[20_think_tags_split]",
    ),
    Mutant(
        "sealed reasoning is shown to whoever asks",
        "models/formats/messages_request.py",
        "if is_whole and opaque is not None and opaque.issuer == self._issuer:",
        "if is_whole and opaque is not None:",
        f"{REQUESTS}test_33_thinking_without_a_seal_of_this_model_is_dropped",
    ),
    Mutant(
        "reasoning stands alone",
        "models/formats/responses_request.py",
        "                yield from thoughts\n                thoughts = []\n                yield item",
        "                yield item\n        yield from thoughts",
        f"{REQUESTS}test_35_reasoning_stands_in_front_of_what_it_led_to_and_has_no_id",
    ),
    Mutant(
        "an orphan is sent on",
        "models/formats/valid_history.py",
        "return messages if _is_valid(messages) else _repair(messages)",
        "return messages",
        f"{REQUESTS}test_39_what_an_abort_left_behind_is_repaired",
    ),
    Mutant(
        "thinking is asked for where its thoughts are lost",
        "models/formats/messages_request.py",
        'elif wanted.get("type") == "disabled" or not _may_think(messages):',
        'elif wanted.get("type") == "disabled":',
        f"{REQUESTS}test_33_thinking_is_not_asked_for_in_the_middle_of_calls_that_lost_theirs",
    ),
    Mutant(
        "Anthropic is not told of tools that were called once",
        "models/formats/messages_request.py",
        "if writer.called and not tools:",
        "if False:",
        f"{REQUESTS}test_anthropic_is_told_of_tools_that_were_called_once",
    ),
    Mutant(
        "Kimi gets ids of another form",
        "models/formats/tool_names.py",
        'case "kimi":',
        'case "kimi" if False:',
        f"{REQUESTS}test_36_the_ids_of_kimi_are_echoed_unchanged",
    ),
    Mutant(
        "a model that has begun to speak is asked again",
        "models/retry.py",
        "pause = None if has_spoken else self._retry.delay(",
        "pause = self._retry.delay(",
        f"{RETRYING}test_a_model_is_asked_again_until_it_has_spoken",
    ),
    Mutant(
        "a stream nobody reads any more goes on",
        "models/retry.py",
        "            finally:\n                await _close(batches)\n            attempts =",
        "            attempts =",
        f"{RETRYING}test_who_stops_listening_lets_the_model_go",
    ),
    Mutant(
        "the key of a vendor goes to any server",
        "models/registry.py",
        "if homes and profile.base_url not in homes:",
        "if False:",
        f"{NAMED}test_the_key_of_a_vendor_goes_to_that_vendor_only",
    ),
    Mutant(
        "tokens from a cache are counted twice",
        "models/prices.py",
        "fresh = usage.input - usage.cached - usage.written",
        "fresh = usage.input",
        "tests/models/test_prices.py::test_a_price_is_for_a_million_tokens",
    ),
    Mutant(
        "an answer is read on after its end",
        "models/http_model.py",
        "                    self._finish(chunks)\n                    break",
        "                    self._finish(chunks)",
        "tests/models/test_hostile.py::test_what_comes_after_the_end_is_not_read",
    ),
    Mutant(
        "a key that a provider repeats is told on",
        "models/endpoint.py",
        "if text != str(error):",
        "if False:",
        "tests/models/test_conformance.py::TestChat::test_a_provider_that_repeats_the_key_is_not_quoted_with_it",
    ),
    Mutant(
        "what a request has written is kept although a plugin changed it",
        "models/formats/turn_cache.py",
        "if written is None or request.messages[: len(written.messages)] != written.messages:",
        "if written is None:",
        "tests/models/test_requests.py::test_what_a_plugin_changed_is_written_again",
    ),
    Mutant(
        "a cancelled request goes on at the provider",
        "transport/live.py",
        "            response.close()",
        "            pass",
        "tests/models/test_conformance.py::TestChat::test_a_cancel_in_the_middle_of_an_answer_closes_its_socket",
    ),
    Mutant(
        "what was staged is never written",
        "running/ledger.py",
        "events, self._staged = [*self._staged, *new_events], []",
        "events, self._staged = [*new_events], []",
        f"{TOLD}[plain]",
    ),
    Mutant(
        "a reader that fell behind is shown merged frames from the wrong place",
        "bus/memory.py",
        "                self._at = channel.start\n",
        "                self._at = channel.start + 1\n",
        "tests/contracts/test_memory.py::TestMemoryBus::test_a_reader_that_fell_behind_is_shown_what_is_merged_from_its_beginning",
    ),
    Mutant(
        "a message joins a branch where an answer is written again",
        "driver/commands.py",
        "if at_leaf and state.input is None and parent == state.parent:",
        "if False:",
        "tests/test_chat.py::test_a_message_sent_while_an_answer_is_written_again_waits_for_it",
    ),
    Mutant(
        "what is staged waits for a slow plugin",
        "running/hook_contexts.py",
        "    await run.commit([])  # a plugin",
        "    pass  # a plugin",
        "tests/test_chat.py::test_a_finished_hook_is_written_before_a_plugin_takes_its_time",
    ),
]
