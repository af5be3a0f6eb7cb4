"""Seeded bugs in what a sandbox guarantees, and in what leaves on somebody else's word; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LIMITS = "tests/sandbox/test_limits.py::"

QUARANTINE = "tests/sandbox/test_quarantine.py::"
SEATBELT = "tests/sandbox/test_seatbelt.py::"
PROFILE = "tests/sandbox/test_seatbelt_profile.py::"
REPOSITORIES = "tests/tools_files/test_repositories.py::"

OIDC = "tests/access/test_oidc.py::"
LOGIN = "tests/mcp_trust/test_login_egress.py::"

SANDBOXED_MUTANTS = [
    Mutant(
        "the run is not put into its control group",
        "sandbox/bubblewrap_runner.py",
        "group.add(first)",
        "pass",
        f"{LIMITS}test_memory_of_any_kind_is_stopped_at_the_limit_by_the_kernel[sockets]",
    ),
    Mutant(
        "buffers of IP sockets are not limited under cgroup v1",
        "sandbox/cgroups.py",
        '            _set(folders["memory"], "memory.kmem.tcp.limit_in_bytes", memory // NETWORK_SHARE)\n',
        "",
        f"{LIMITS}test_memory_of_any_kind_is_stopped_at_the_limit_by_the_kernel[udp]",
    ),
    Mutant(
        "memory is listed where there is no control group",
        "sandbox/bubblewrap_probe.py",
        'hold("memory", bool(facts["ungrouped"]), str(facts["ungrouped"]))',
        "pass",
        f"{LIMITS}test_without_a_cgroup_memory_is_not_listed_and_the_reason_is",
    ),
    Mutant(
        "the control group of a run stays",
        "sandbox/bubblewrap_runner.py",
        "owned.callback(group.remove)",
        "pass",
        f"{LIMITS}test_no_group_is_left_after_a_run_however_it_ends",
    ),
    Mutant(
        "the control group of a killed process stays",
        "sandbox/cgroups.py",
        "            remove_stale_cgroups(above)\n",
        "",
        f"{LIMITS}test_the_group_of_a_process_that_was_killed_is_removed_by_the_next",
    ),
    Mutant(
        "a quota counts bytes and no files",
        "sandbox/disk.py",
        "size, count = size + status.st_blocks * BLOCK, count + 1",
        "size, count = size + status.st_blocks * BLOCK, count",
        f"{LIMITS}test_a_command_that_writes_more_than_its_quota_is_ended[many small]",
    ),
    Mutant(
        "a run may write what another program frees",
        "sandbox/disk.py",
        "(self._next if is_suspect else self._next_unprompted)",
        "(self._next if is_suspect else began + 1)",
        f"{LIMITS}test_a_command_is_ended_although_another_program_frees_as_much_as_it_writes",
    ),
    Mutant(
        "files that were removed and are held open are not counted",
        "sandbox/disk.py",
        "for inode, blocks in self._nameless(device):",
        "for inode, blocks in list[tuple[int, int]]():",
        f"{LIMITS}test_a_command_that_writes_more_than_its_quota_is_ended[removed and held]",
    ),
    Mutant(
        "a run is ended for what somebody else writes",
        "sandbox/disk.py",
        "is_over = self._has_taken(limits.disk if is_blind else most)",
        "is_over = True",
        f"{LIMITS}test_a_command_is_not_ended_for_what_somebody_else_writes",
    ),
    Mutant(
        "a disk that is nearly full is filled",
        "sandbox/disk.py",
        "most = SOME if now.f_bavail * now.f_frsize < limits.free else limits.disk",
        "most = limits.disk",
        f"{LIMITS}test_a_command_that_fills_a_disk_which_is_nearly_full_is_ended",
    ),
    Mutant(
        "what a command makes that git obeys stays where it is",
        "sandbox/shell_sandbox.py",
        "created = {*after.unchangeable, *links} - before.unchangeable",
        "created = set[str]()",
        f"{QUARANTINE}test_a_repository_that_a_command_makes_is_not_obeyed_by_git[new]",
    ),
    Mutant(
        "a quote in a path ends the string of the profile",
        "sandbox/seatbelt_profile.py",
        """.replace('"', '\\\\"')""",
        "",
        f"{PROFILE}test_a_path_is_one_string_whatever_is_in_it",
    ),
    Mutant(
        "a folder above a protected path can be renamed on macOS",
        "sandbox/seatbelt_profile.py",
        "sorted({*pinned, *absolute(protected.pinned)})",
        "sorted(absolute(protected.pinned))",
        f"{PROFILE}test_a_protected_path_keeps_its_name_and_gets_no_second_one",
    ),
    Mutant(
        "the probe of macOS has no control",
        "sandbox/seatbelt.py",
        """hold(guarantee, f"fact {fact}" not in control,""",
        "hold(guarantee, False,",
        f"{SEATBELT}test_what_the_probe_could_do_breaks_a_guarantee_and_so_does_a_control_that_could_not",
    ),
    Mutant(
        "a sandbox of macOS that is not shown to work is taken for one that is",
        "tools/code/shell.py",
        'if report.backend == "seatbelt" and unproven_guarantees() and approval != "deny":',
        "if False:",
        f"{SEATBELT}test_where_the_probe_got_out_every_command_asks",
    ),
    Mutant(
        "what a command of macOS has started is left running",
        "sandbox/seatbelt.py",
        "            kill()  # what it has left running\n",
        "",
        f"{SEATBELT}test_a_command_ends_with_what_it_started",
    ),
    Mutant(
        "a bare repository is nothing that is kept",
        "sandbox/hidden_paths.py",
        "if not is_fixed and is_repository(entry.name for entry in listed):",
        "if False:",
        f"{QUARANTINE}test_a_repository_that_a_command_makes_is_not_obeyed_by_git[bare]",
    ),
    Mutant(
        "a folder in quarantine is open",
        "sandbox/quarantine.py",
        "os.fchmod(moved, 0)",
        "pass",
        f"{QUARANTINE}test_what_is_in_quarantine_can_be_put_back_and_is_not_obeyed_there",
    ),
    Mutant(
        "a shell sees the quarantine",
        "tools/files/protected.py",
        '"**/.everturn-quarantine*",',
        "",
        f"{QUARANTINE}test_neither_a_shell_nor_file_tools_see_the_quarantine",
    ),
    Mutant(
        "write_file completes a bare repository",
        "tools/files/folder.py",
        "check(lambda other: self._stat(other) is not None)",
        "pass",
        f"{REPOSITORIES}test_of_parts_that_are_written_at_once_one_is_refused",
    ),
    Mutant(
        "a person is asked about a write that will be refused",
        "tools/files/write_tools.py",
        "    await _check_repository(scope, system, path)\n",
        "",
        f"{REPOSITORIES}test_a_person_is_not_asked_about_what_is_refused",
    ),
    Mutant(
        "a login of an MCP server is led anywhere",
        "mcp/http.py",
        """        if not self._policy.is_own(str(request.url)):
            return await _elsewhere(self._policy, request)
        response""",
        "        response",
        f"{LOGIN}test_a_login_is_led_nowhere_inside[resource]",
    ),
    Mutant(
        "a token is renewed wherever a server says",
        "mcp/http.py",
        "if not self._own.is_own(str(request.url)):  # a token",
        "if False:  # a token",
        f"{LOGIN}test_a_token_is_not_renewed_at_an_address_inside",
    ),
    Mutant(
        "a server's own headers go where it leads",
        "mcp/http.py",
        " if name in _LOGIN_HEADERS}",
        "}",
        f"{LOGIN}test_headers_for_the_server_do_not_go_where_it_leads",
    ),
    Mutant(
        "a person is shown any address to open",
        "mcp/login_redirect.py",
        "        self._check(url)\n",
        "",
        f"{LOGIN}test_a_person_is_shown_no_address_that_nobody_should_open[https://10.0.0.1/x]",
    ),
    Mutant(
        "every port of this machine is an own origin",
        "egress/client.py",
        "and origin(url) in self._own",
        "and origin(url)[:2] in {one[:2] for one in self._own}",
        f"{OIDC}test_endpoints_that_a_provider_names_elsewhere_inside_are_not_asked",
    ),
    Mutant(
        "an ID token is an API token",
        "access/auth/oidc.py",
        "if not is_login and not is_access_token(",
        "if False and not is_access_token(",
        f"{OIDC}test_a_token_that_says_who_has_logged_in_is_not_one_to_ask_with",
    ),
    Mutant(
        "where one audience is for both kinds of token, any is taken",
        "access/auth/oidc.py",
        "return not is_shared or bool(",
        "return True or bool(",
        f"{OIDC}test_where_both_kinds_are_for_one_audience_a_token_has_to_show_that_it_is_one_to_ask_with",
    ),
    Mutant(
        "an old token raises a role",
        "access/auth/oidc_claims.py",
        "if issued < _last_word(",
        "if issued < 0 * _last_word(",
        f"{OIDC}test_a_token_that_is_older_than_the_last_change_raises_nobody",
    ),
    Mutant(
        "the secret is always in the form",
        "access/auth/oidc_login.py",
        'if "client_secret_post" in methods and "client_secret_basic" not in methods:',
        "if True:",
        f"{OIDC}test_the_secret_is_shown_in_the_way_that_the_provider_takes",
    ),
    Mutant(
        "wrong keys are not counted",
        "server/app.py",
        "self._unknown_credential_limit.take(scope)  # beforehand",
        "pass  # beforehand",
        "tests/server/test_rate_limit.py::test_many_wrong_keys_at_once_are_as_few_questions",
    ),
    Mutant(
        "who was recognised is locked out by the wrong keys of others",
        "server/app.py",
        "is_remembered = self.authenticator.was_recently_valid(*shown)",
        "is_remembered = False",
        "tests/server/test_rate_limit.py::test_wrong_keys_are_refused_without_a_question_to_the_store_and_right_ones_go_on",
    ),
]
