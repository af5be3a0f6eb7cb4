"""Seeded bugs in how several processes share a store, and in screens that close themselves; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SERVER = "tests/cli/test_store_server.py::"
HOUSING = "tests/tui/test_local_server.py::"
DRAWING = "tests/tui/test_render.py::"
GATES = "tests/tui/test_gates.py::"

SHARED_STORE_MUTANTS = [
    Mutant(
        "whoever has the port is taken for the server",
        "cli/store/server.py",
        "    return hmac.compare_digest(shown.encode(), prove(server.token, challenge, port, place).encode())",
        "    return True",
        f"{SERVER}test_a_proof_that_is_passed_on_from_the_real_server_is_none",
    ),
    Mutant(
        "a proof says nothing of the port",
        "cli/store/server.py",
        '["everturn store server", challenge, port, str(place)]',
        '["everturn store server", challenge, str(place)]',
        f"{SERVER}test_a_proof_that_is_passed_on_from_the_real_server_is_none",
    ),
    Mutant(
        "a proof says nothing of the store",
        "cli/store/server.py",
        '["everturn store server", challenge, port, str(place)]',
        '["everturn store server", challenge, port]',
        f"{SERVER}test_two_stores_in_one_folder_are_not_taken_for_each_other",
    ),
    Mutant(
        "a file with a token that others can read is trusted",
        "cli/store/server.py",
        "or found.st_mode & 0o077",
        "or False",
        f"{SERVER}test_the_file_is_for_its_owner_alone_and_another_one_is_not_read",
    ),
    Mutant(
        "a client does not look where the server has gone",
        "client/http.py",
        "        if self.relocate is not None:\n            await self.relocate()",
        "        if False:\n            await self.relocate()",
        f"{HOUSING}test_when_the_first_one_leaves_the_second_has_the_sessions",
    ),
    Mutant(
        "a terminal that takes over serves at another port",
        "cli/store/connection.py",
        "            serve.listen(ServerOptions(port=port)).close()\n            return port",
        "            serve.listen(ServerOptions(port=port)).close()\n            return 0",
        f"{HOUSING}test_when_the_first_one_leaves_the_second_has_the_sessions",
    ),
    Mutant(
        "a dialog that ends closes what lies on top of it",
        "terminal/tui/dismiss.py",
        "        if self.is_active:\n",
        "        if True:\n",
        f"{GATES}test_what_ends_below_the_palette_closes_itself_and_not_the_palette",
    ),
    Mutant(
        "what is asked has a third of the screen, though the rest is free",
        "terminal/tui/gates/dialog.py",
        "max(room // 3, 2, room - fixed - wanted)",
        "max(room // 3, 2)",
        f"{GATES}test_nothing_is_cropped_while_there_is_space[en]",
    ),
    Mutant(
        "a request that was refused is a stream that broke off",
        "terminal/tui/render/annotations.py",
        'return part.finish in ODD_ENDS and not part.continues and (has_said or part.finish != "error")',
        "return part.finish in ODD_ENDS",
        f"{DRAWING}test_a_request_that_was_refused_is_not_told_as_a_stream_that_broke[context]",
    ),
]
