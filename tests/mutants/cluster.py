"""Seeded bugs in what a cluster notices: ends nobody announced, event loops that stand still, deaths in a row; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

WATCHDOG = "tests/cluster/test_watchdog.py::"
STORE = "tests/contracts/test_memory.py::TestMemoryStore::"
DRIVER = "tests/turn/test_driver.py::"
ADDRESS = "tests/cluster/test_nats_address.py::"
POLL = "tests/turn/test_log_poll.py::"
STREAMS = "tests/server/test_streams.py::"
FORGED = "tests/security/test_forged_frames.py::"
ENDED = "tests/stores/test_ended_connections.py::"

CLUSTER_MUTANTS = [
    Mutant(
        "a delta with a part before the first reaches a reader",
        "bus/remote/codec.py",
        "0 <= frame.part < PARTS_LIMIT",
        "frame.part < PARTS_LIMIT",
        "tests/security/test_parser_corpus.py::test_no_parser_is_broken_by_anything_in_the_corpus[frames]",
    ),
    Mutant(
        "a wake that can never succeed is tried for ever",
        "engine/restate/worker.py",
        'if "\\0" in session:',
        'if session == "\\0":',
        f"{FORGED}test_a_wake_for_a_name_that_no_database_takes_is_not_tried_for_ever",
    ),
    Mutant(
        "a part before the first is taken from another node",
        "bus/remote/codec.py",
        "0 <= frame.part < PARTS_LIMIT",
        "frame.part < PARTS_LIMIT",
        f"{FORGED}test_a_frame_out_of_range_is_nobodys",
    ),
    Mutant(
        "a frame of another turn is shown",
        "bus/remote/codec.py",
        "return isinstance(frame, CallProgress) and frame.turn == turn",
        "return isinstance(frame, CallProgress)",
        f"{FORGED}test_a_frame_of_another_turn_is_not_shown",
    ),
    Mutant(
        "a message may be older than any date",
        "bus/remote/codec.py",
        " or len(age) > AGE_DIGITS",
        "",
        f"{FORGED}test_an_age_that_no_date_has_is_not_a_message",
    ),
    Mutant(
        "what other nodes say of a step is held without a limit",
        "bus/remote/inbound.py",
        "if inbound.size > LIMIT:",
        "if inbound.size < 0:",
        f"{FORGED}test_a_step_that_never_ends_is_held_up_to_a_limit",
    ),
    Mutant(
        "a reader asks a bus that says it is over again at once",
        "running/follow.py",
        "await asyncio.sleep(RESUBSCRIBE_PAUSE)",
        "await asyncio.sleep(0)",
        f"{FORGED}test_a_reader_whose_bus_says_the_turn_is_over_when_it_is_not_does_not_spin",
    ),
    Mutant(
        "whoever waits for a command asks a bus that is over again at once",
        "base_app/readers.py",
        "await asyncio.sleep(RESUBSCRIBE_PAUSE)",
        "await asyncio.sleep(0)",
        f"{FORGED}test_who_waits_for_a_command_on_such_a_bus_does_not_spin_either",
    ),
    Mutant(
        "a reader that is nudged does not look at the log",
        "running/follow.py",
        "return frames if frames or end_reason() else (LogAdvanced(2**63 - 1),)",
        "return frames",
        f"{POLL}test_a_turn_whose_end_nobody_announced_ends_for_its_reader",
    ),
    Mutant(
        "a reader is told of the same position again and again",
        "running/log_poll.py",
        "if head != watch.notified_position and (",
        "if (",
        f"{POLL}test_only_a_reader_that_is_behind_is_told_and_once_for_each_position",
    ),
    Mutant(
        "the positions of sessions are read one by one",
        "running/log_poll.py",
        "SESSIONS_PER_QUERY = 1000",
        "SESSIONS_PER_QUERY = 1",
        f"{POLL}test_many_readers_cost_one_query_for_each_thousand_sessions",
    ),
    Mutant(
        "nobody polls for a command that is waited for",
        "base_app/readers.py",
        "watch = self._watch(session, session, lambda: after)",
        'watch = self._watch("", session, lambda: after)\n        watch.told = -1',
        f"{POLL}test_a_command_that_was_acted_on_while_nobody_said_so_is_not_waited_for_longer",
    ),
    Mutant(
        "streams are not told that their log has moved",
        "server/streams/hub.py",
        "lambda: broadcast.seq, broadcast.read_log)",
        "lambda: 2**62, broadcast.read_log)",
        f"{STREAMS}test_word_that_is_lost_on_the_way_is_made_up_for",
    ),
    Mutant(
        "a loop that has no processor is taken for one that stands still",
        "watchdog.py",
        "min(elapsed, 2 * TICK) - max(0.0, starved)",
        "min(elapsed, 2 * TICK)",
        f"{WATCHDOG}test_a_machine_with_a_dozen_hungry_processes_for_each_processor_needs_minutes_to_be_taken_for_a_wedge",
    ),
    Mutant(
        "a process that was stopped is taken for one whose loop stands still",
        "watchdog.py",
        "min(elapsed, 2 * TICK)",
        "elapsed",
        f"{WATCHDOG}test_only_time_in_which_the_loop_could_have_turned_counts",
    ),
    Mutant(
        "nobody knows which drive stopped the loop",
        "driver/driver.py",
        "        CURRENT_DRIVE.set(ActiveDrive(session, claim.epoch, claim.tries))\n",
        "",
        f"{WATCHDOG}test_the_drive_that_stands_in_the_way_is_known_by_name",
    ),
    Mutant(
        "three deaths in a row are ten minutes",
        "core/session_claims.py",
        "RETRY_PAUSES[tries - MAX_QUICK_CLAIMS] if tries < MAX_QUICK_CLAIMS + len(RETRY_PAUSES) else QUARANTINE_SECONDS",
        "QUARANTINE_SECONDS",
        f"{DRIVER}test_a_session_that_lost_three_drivers_in_a_row_rests_for_seconds_and_goes_on_by_itself",
    ),
    Mutant(
        "a session that rests is forgotten",
        "driver/driver.py",
        "        await self._setup.engine.wake(session, now + pause)\n",
        "",
        f"{DRIVER}test_a_session_that_lost_three_drivers_in_a_row_rests_for_seconds_and_goes_on_by_itself",
    ),
    Mutant(
        "a session that kills is tried for ever",
        "core/session_claims.py",
        "return tries >= MAX_QUICK_CLAIMS + len(RETRY_PAUSES)",
        "return False",
        f"{STORE}test_a_session_that_dies_again_and_again_rests_for_seconds_before_it_is_left_alone",
    ),
    Mutant(
        "a list of servers is one server",
        "cluster/nats_address.py",
        'map(str.strip, text.split(","))',
        "[text]",
        f"{ADDRESS}test_a_list_of_servers_is_read",
    ),
    Mutant(
        "some servers in clear beside others with TLS",
        "cluster/nats_address.py",
        "if len(schemes) > 1:",
        "if False:",
        f"{ADDRESS}test_what_is_no_server_is_refused",
    ),
    Mutant(
        "nobody looks at the address of NATS before a start",
        "config/check.py",
        "    _check_cluster(config, reader)\n",
        "",
        f"{ADDRESS}test_a_configuration_that_would_not_be_honoured_is_refused",
    ),
    Mutant(
        "who has no time left fails on a connection that the database has ended",
        "stores/sql/postgres.py",
        "if now > job.until and not (job.tries == 1 and is_connection_closed(error)):",
        "if now > job.until:",
        f"{ENDED}test_what_finds_an_ended_connection_is_done_on_another_though_its_time_has_passed",
    ),
    Mutant(
        "a connection that has ended is told as a database that does not answer",
        "stores/sql/errors.py",
        "    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):\n",
        "    if False:\n",
        f"{ENDED}test_only_silence_is_reported_as_a_database_that_does_not_answer",
    ),
]
