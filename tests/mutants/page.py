"""Seeded bugs in the page as it is served, the frame for code, and what is told of a session and a house; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PAGES = "tests/server/test_web_ui.py::"
FRAME = "tests/server/test_sandbox_frame.py::"
WALLED = f"{FRAME}test_the_frame_has_no_origin_no_network_and_one_script"
THEN_ITS_SCRIPT = """
            "default-src 'none'",
            f"script-src {_script_hashes(page)} blob: 'unsafe-eval'\""""
FRAME_BEFORE = """"worker-src blob:",
            "connect-src 'none'",
            """
LOOKING = "tests/access/test_log.py::"
OVERSEEING = "tests/access/test_admin.py::"
STRICT = f"{PAGES}test_the_page_is_for_anybody_and_strict"
TRUSTED = f"{OVERSEEING}test_a_server_is_trusted_as_it_was_shown_and_first_of_all_its_start"
TOLD = f"{OVERSEEING}test_what_a_server_runs_and_why_it_fails_only_an_operator_is_told"

PAGE_MUTANTS = [
    Mutant(
        "the page runs scripts that stand in it",
        "server/routes/web_ui.py",
        "\"script-src 'self'\",",
        "\"script-src 'self' 'unsafe-inline'\",",
        STRICT,
    ),
    Mutant(
        "the page asks anybody",
        "server/routes/web_ui.py",
        "\"connect-src 'self'\",",
        '"connect-src *",',
        STRICT,
    ),
    Mutant(
        "anybody puts the page into a frame",
        "server/routes/web_ui.py",
        "        \"frame-ancestors 'none'\",\n",
        '        "frame-ancestors *",\n',
        STRICT,
    ),
    Mutant(
        "text becomes markup by a policy of anybody's",
        "server/routes/web_ui.py",
        '"trusted-types everturn-push",',
        '"trusted-types *",',
        STRICT,
    ),
    Mutant(
        "a link among the assets leads out of them",
        "server/routes/web_ui.py",
        'path.parent != self._root / "assets" or ',
        "",
        f"{PAGES}test_nothing_else_is_served[link.js]",
    ),
    Mutant(
        "any kind of file is an asset",
        "server/routes/web_ui.py",
        "path.suffix not in TYPES or not",
        "not",
        f"{PAGES}test_nothing_else_is_served[notes.txt]",
    ),
    Mutant(
        "what is packed goes to who cannot unpack it",
        "server/routes/web_ui.py",
        "    if takes_packed:",
        "    if True:",
        f"{PAGES}test_what_it_is_made_of_is_packed_and_kept_for_ever",
    ),
    Mutant(
        "a cache gives what is packed to everybody",
        "server/routes/web_ui.py",
        '{**headers, "vary": "accept-encoding"}',
        "{**headers}",
        f"{PAGES}test_what_it_is_made_of_is_packed_and_kept_for_ever",
    ),
    Mutant(
        "code in the frame has the origin of the page",
        "server/routes/js_sandbox.py",
        f'"sandbox allow-scripts",{THEN_ITS_SCRIPT}',
        f'"sandbox allow-scripts allow-same-origin",{THEN_ITS_SCRIPT}',
        WALLED,
    ),
    Mutant(
        "code in the frame asks the network",
        "server/routes/js_sandbox.py",
        '"worker-src blob:",\n            "connect-src \'none\'",',
        '"worker-src blob:",\n            "connect-src \'self\'",',
        WALLED,
    ),
    Mutant(
        "code in the frame loads what the server has",
        "server/routes/js_sandbox.py",
        "script-src {_script_hashes(page)} blob: 'unsafe-eval'",
        "script-src {_script_hashes(page)} 'self' blob: 'unsafe-eval'",
        WALLED,
    ),
    Mutant(
        "anybody has the frame in a page of theirs",
        "server/routes/js_sandbox.py",
        f"{FRAME_BEFORE}\"frame-ancestors 'self'\",",
        f'{FRAME_BEFORE}"frame-ancestors *",',
        WALLED,
    ),
    Mutant(
        "whoever may not review reads a result in the log",
        "access/conversations/log.py",
        "redact_event(entry.event) if self.scope.is_redacted else entry.event",
        "entry.event",
        f"{LOOKING}test_what_is_under_review_is_redacted_in_the_log_as_well",
    ),
    Mutant(
        "a page of the log says that it is the last one",
        "access/conversations/log.py",
        "return api.LogPage(entries=shown, is_whole=False)",
        "return api.LogPage(entries=shown, is_whole=True)",
        f"{LOOKING}test_pages_of_the_log_add_up_to_the_log",
    ),
    Mutant(
        "a page of the log is as long as somebody likes",
        "access/conversations/log.py",
        "left, size = max(1, min(limit, PAGE)), 0",
        "left, size = PAGE, 0",
        f"{LOOKING}test_pages_of_the_log_add_up_to_the_log",
    ),
    Mutant(
        "everybody is told where the files of the house lie",
        "access/rules/explain_view.py",
        "shown = rule if is_operator(scope) else",
        "shown = rule if True else",
        f"{OVERSEEING}test_only_an_operator_is_told_where_the_files_lie",
    ),
    Mutant(
        "what was allowed in a session of another tenant is explained",
        "access/administration/admin.py",
        "info = await self.scope.own_session(request.session) if request.session is not None else None",
        "info = None",
        f"{OVERSEEING}test_what_no_rule_fits_is_asked_and_what_was_allowed_in_a_session_counts_there",
    ),
    Mutant(
        "a server is trusted as it is by now",
        "access/administration/admin.py",
        '        if server_hash(source, spec) != seen.hash:\n            raise HashMismatch("this server has changed since it was shown; review it again")\n        await self.scope.audit_action("mcp.trust", server, hash=seen.hash)\n        if server_hash(source, spec) != seen.hash:',
        '        await self.scope.audit_action("mcp.trust", server, hash=seen.hash)\n        if False:',
        TRUSTED,
    ),
    Mutant(
        "a server's tools are no part of what is trusted",
        "access/mcp/views.py",
        'hash_values("server", spec.launch_hash, tools)',
        'hash_values("server", spec.launch_hash)',
        TRUSTED,
    ),
    Mutant(
        "everybody is told what a server runs",
        "access/administration/admin.py",
        "        if is_operator(self.scope):\n            return whole\n",
        "        return whole\n",
        TOLD,
    ),
    Mutant(
        "a key in the address of a server is shown",
        "access/mcp/views.py",
        'f"{address.scheme}://{address.netloc}{address.path}" if spec.url',
        "spec.url if spec.url",
        f"{OVERSEEING}test_a_login_gives_an_address_and_goes_on_by_itself_when_somebody_was_there",
    ),
]
