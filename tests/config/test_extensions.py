"""Extensions of a folder: skills, agents, commands and MCP servers of other assistants, as their files are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.extension_files import SKILLS, write_files, write_project

from everturn.config.extensions.discovery import LAYOUTS, Extensions, find_extensions, select_extensions, trust_key
from everturn.config.extensions.extension import Extension
from everturn.config.extensions.file_scan import MAX_TEXT
from everturn.config.extensions.frontmatter import parse_document
from everturn.config.extensions.mcp_files import PROJECT_FILES, USER_FILES, make_server
from everturn.config.extensions.skill_library import FolderSkills, render_index
from everturn.config.extensions.slash_commands import SHELL_NOTE, expand_command
from everturn.config.extensions.subagents import IGNORED, MAX_STEPS, choose_tools, step_limit
from everturn.config.folder.extension_tools import list_commands, make_extensions
from everturn.config.folder.project import Project, find_project
from everturn.config.folder.trust import FolderTrust
from everturn.errors import BadArguments, ConfigError
from everturn.tools.groups import ToolGroup
from everturn.tools.subagent import SubagentTool


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "api").mkdir()
    return find_project(root)


def find(project: Project, environ: dict[str, str]) -> Extensions:
    return find_extensions(project.root, project.current, environ)


def names(extensions: Extensions, kind: str) -> list[str]:
    return [found.name for found in extensions.found if found.kind == kind]


def trust_all(project: Project, environ: dict[str, str]) -> FolderTrust:
    trust = FolderTrust(environ)
    trust.answer(project, trust.unanswered_extensions(project), is_trusted=True)
    return trust


def test_the_layouts_of_three_assistants_load_unchanged(project: Project, environ: dict[str, str]) -> None:
    write_project(project.root)
    extensions = find(project, environ)
    assert extensions.problems == []
    assert sorted(names(extensions, "skill")) == sorted(Path(path).parent.name for path in SKILLS)
    assert sorted(names(extensions, "agent")) == ["code-reviewer", "docs-writer", "planner"]
    assert sorted(names(extensions, "command")) == ["explain", "fix-issue", "frontend:component", "test"]
    about = {found.name: found.description for found in extensions.found}
    assert about["commit-helper"].endswith("Use when: writing commit messages, or reviewing staged changes")
    assert about["webapp-testing"] == (
        "Toolkit for interacting with and testing local web applications using Playwright. "
        "Supports verifying frontend functionality."
    )
    assert about["data-analysis"].startswith("Analyze datasets, generate charts, and create summary reports: use when")
    assert about["sql-style"] == "House style for SQL. Use it for migrations."
    assert about["release-notes"] == "Write release notes from the history. It's short."


def test_a_project_counts_only_with_trusted_hashes_and_any_changed_file_ends_the_trust(
    project: Project, environ: dict[str, str]
) -> None:
    write_project(project.root)
    trust = FolderTrust(environ)
    assert trust.extensions(project).found == []
    trust = trust_all(project, environ)
    assert len(names(trust.extensions(project), "skill")) == len(SKILLS)
    (project.root / ".claude/skills/pdf/scripts/fill.py").write_text("import os\n")
    assert "pdf" not in names(trust.extensions(project), "skill")
    assert [found.name for found in trust.unanswered_extensions(project)] == ["pdf"]
    trust.answer(project, trust.unanswered_extensions(project), is_trusted=False)
    assert trust.unanswered_extensions(project) == []
    assert "pdf" not in names(trust.extensions(project), "skill")


def test_a_new_file_beside_a_skill_ends_the_trust_too(project: Project, environ: dict[str, str]) -> None:
    write_project(project.root)
    trust = trust_all(project, environ)
    (project.root / ".claude/skills/pdf/more.md").write_text("more")
    assert [found.name for found in trust.unanswered_extensions(project)] == ["pdf"]


def test_the_users_own_skills_need_no_trust_and_an_untrusted_project_does_not_hide_them(
    project: Project, environ: dict[str, str], tmp_path: Path
) -> None:
    own = "---\nname: pdf\ndescription: mine\n---\nMy way.\n"
    write_files(tmp_path / "home", {".claude/skills/pdf/SKILL.md": own, ".agents/skills/mine/SKILL.md": own})
    write_project(project.root)
    trust = FolderTrust(environ)
    found = {skill.name: skill.text for skill in trust.extensions(project, "skill").found}
    assert found == {"pdf": "My way."}  # both files give this name
    trust_all(project, environ)
    selected = trust.extensions(project, "skill")
    assert "PDF Processing Guide" in next(skill.text for skill in selected.found if skill.name == "pdf")
    assert any("hidden" in problem.reason for problem in selected.problems)


def test_a_skill_is_listed_with_its_hash_and_its_text_and_files_are_loaded_on_demand(
    project: Project, environ: dict[str, str]
) -> None:
    write_project(project.root)
    trust = trust_all(project, environ)
    skills = FolderSkills(lambda: trust.extensions(project, "skill").found)
    index = render_index(skills.list())
    assert "- pdf: Comprehensive PDF manipulation" in index
    assert "PDF Processing Guide" not in index
    pdf = next(skill for skill in skills.list() if skill.name == "pdf")
    assert f"[sha256 {pdf.hash[:16]}]" in index
    text = skills.load("PDF")
    assert "PDF Processing Guide" in text
    assert "- scripts/fill.py" in text
    assert "pypdfium2" in skills.load("pdf", "reference.md")
    for path in ("../commit-helper/SKILL.md", "/etc/passwd", "scripts/../../x", "SKILL.md/..", "", "nope.md")[:4]:
        with pytest.raises(BadArguments, match="has no file"):
            skills.load("pdf", path)
    (project.root / ".claude/skills/pdf/SKILL.md").write_text(SKILLS[".claude/skills/pdf/SKILL.md"] + "Obey.")
    with pytest.raises(BadArguments, match="has changed"):
        skills.load("pdf")


def test_a_skill_that_the_model_may_not_start_is_not_listed_but_is_a_command(
    project: Project, environ: dict[str, str]
) -> None:
    hidden = "---\nname: deploy\ndescription: Deploy\ndisable-model-invocation: true\n---\nDeploy $ARGUMENTS now.\n"
    write_files(project.root, {".claude/skills/deploy/SKILL.md": hidden})
    trust = trust_all(project, environ)
    assert FolderSkills(lambda: trust.extensions(project, "skill").found).names() == []
    (command,) = list_commands(trust.extensions(project))
    assert expand_command(command.text, "staging") == "Deploy staging now."


def tools_of(project: Project, environ: dict[str, str], trust: FolderTrust) -> dict[str, set[str]]:
    """The tools of each sub-agent."""
    from everturn.tools.files import files

    extensions = make_extensions(project, trust, environ, [files(project.root, approval="ask")], ())
    agents = [tool for tool in extensions.tools if isinstance(tool, SubagentTool)]
    return {tool.spec.name: {own.spec.name for own in tool.agent.tools} for tool in agents if tool.agent is not None}


def test_sub_agents_have_at_most_the_tools_of_the_folder(project: Project, environ: dict[str, str]) -> None:
    write_project(project.root)
    trust = trust_all(project, environ)
    readers = {"read_file", "list_directory", "search_files"}
    assert tools_of(project, environ, trust) == {
        "agent_code_reviewer": readers,
        "agent_docs_writer": {*readers, "write_file", "edit_file"},
        "agent_planner": readers,
    }


@pytest.mark.parametrize(
    ("head", "allowed"),
    [
        ("tools: Read", {"read_file"}),
        ("tools: [Read, Bash]", {"read_file", "run_shell"}),
        ("tools:\n  - Edit\n  - Write", {"edit_file", "write_file"}),
        ("tools: Bash(rm -rf:*), Read", {"run_shell", "read_file"}),
        ("disallowedTools: Write", {"read_file", "run_shell"}),
        ("tools:\n  write: false", {"read_file", "run_shell"}),
        ("tools:\n  '*': false\n  read: true", {"read_file"}),
        ("permission:\n  edit: deny", {"read_file", "run_shell"}),
        ("permission:\n  bash:\n    'git *': allow\n    '*': deny", {"read_file", "write_file", "edit_file"}),
        ("permission: deny", set[str]()),
        ("permissionMode: plan", {"read_file"}),
    ],
)
def test_a_file_takes_tools_away(head: str, allowed: set[str]) -> None:
    choice = choose_tools(parse_document(f"---\n{head}\n---\nx").fields)
    all_tools = {"read_file": True, "write_file": False, "edit_file": False, "run_shell": False}
    assert {name for name, reads in all_tools.items() if choice.allows(name, read_only=reads)} == allowed


def test_arguments_are_filled_in_once() -> None:
    assert expand_command("Fix $1 and $2: $ARGUMENTS", "12 'a b'") == "Fix 12 and a b: 12 'a b'"
    assert expand_command("Fix $1", "$2 $ARGUMENTS") == "Fix $2"
    assert expand_command("Explain it.", "slowly") == "Explain it.\n\nslowly"
    assert expand_command("It costs $10, $ARGUMENTSX", "") == "It costs $10, $ARGUMENTSX"
    assert expand_command("Fix $1", "it's") == "Fix it's"
    assert expand_command("See !`git log`", "").endswith(SHELL_NOTE)


def test_the_step_limit_of_a_file_is_at_most_ours() -> None:
    assert step_limit({"maxTurns": "12"}) == 12
    assert step_limit({"steps": "99999"}) == 100
    assert step_limit({"maxTurns": "-1"}) == step_limit({"maxTurns": ["3"]}) == step_limit({})


MCP: dict[str, dict[str, Any]] = {
    ".mcp.json": {
        "mcpServers": {"Files": {"command": "npx", "args": ["-y", "files", "${ROOT:-/srv}"], "env": {"K": "${TOKEN}"}}}
    },
    ".cursor/mcp.json": {"mcpServers": {"cur": {"command": "${workspaceFolder}/run", "env": {"T": "${env:TOKEN}"}}}},
    ".vscode/mcp.json": {
        "inputs": [{"id": "key", "type": "promptString"}],
        "servers": {
            "docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"X-Key": "${env:TOKEN}"}},
            "asks": {"type": "stdio", "command": "x", "env": {"K": "${input:key}"}},
        },
    },
    "opencode.json": {
        "mcp": {
            "local": {
                "type": "local",
                "command": ["bun", "x", "srv"],
                "environment": {"T": "{env:TOKEN}"},
                "enabled": True,
            },
            "off": {"type": "local", "command": ["x"], "enabled": False},
            "far": {"type": "remote", "url": "https://example.com/mcp", "oauth": {}},
        }
    },
}


def test_the_mcp_files_of_other_programs_are_read_and_filled_in_only_after_trust(
    project: Project, environ: dict[str, str], tmp_path: Path
) -> None:
    write_files(project.root, {name: json.dumps(table) for name, table in MCP.items()})
    claude = {
        "mcpServers": {"own": {"command": "own"}},
        "projects": {str(project.root): {"mcpServers": {"here": {"command": "h"}}}},
    }
    write_files(tmp_path / "home", {".claude.json": json.dumps(claude)})
    servers = {found.name: found for found in find(project, environ).found if found.kind == "mcp"}
    assert set(servers) == {"files", "cur", "docs", "asks", "local", "far", "own", "here"}
    assert "is passed: ROOT:-/srv, TOKEN" in servers["files"].description
    assert not any("secret-value" in found.text for found in servers.values())
    known = {**environ, "TOKEN": "secret-value"}
    spec = make_server(servers["files"], known)
    assert (spec.command, spec.args, spec.env) == ("npx", ("-y", "files", "/srv"), {"K": "secret-value"})
    assert spec.folder == str(project.root)
    assert "secret-value" not in spec.line
    assert make_server(servers["cur"], known).command == f"{project.root}/run"
    assert make_server(servers["cur"], known).env == {"T": "secret-value"}
    assert make_server(servers["docs"], known).headers == {"X-Key": "secret-value"}
    assert make_server(servers["local"], known).args == ("x", "srv")
    assert make_server(servers["local"], known).env == {"T": "secret-value"}
    assert make_server(servers["far"], known).url == "https://example.com/mcp"
    with pytest.raises(ConfigError, match="input:key"):
        make_server(servers["asks"], known)
    with pytest.raises(ConfigError, match="TOKEN is not set"):
        make_server(servers["files"], environ)


def test_comments_in_json_are_allowed_and_text_in_strings_stays(project: Project, environ: dict[str, str]) -> None:
    text = '{ // servers\n "servers": {"a": {"command": "x", "args": ["http://b/*c*/", ",]"],}, /* off */ },\n}'
    write_files(project.root, {".vscode/mcp.json": text})
    (found,) = find(project, environ).found
    assert make_server(found, environ).args == ("http://b/*c*/", ",]")


def test_no_server_is_started_before_it_is_trusted(project: Project, environ: dict[str, str]) -> None:
    pytest.importorskip("mcp")
    from everturn.mcp import McpServers
    from everturn.mcp.trust import TrustFile, default_trust_path

    mark = project.root / "started"
    write_files(
        project.root, {".mcp.json": json.dumps({"mcpServers": {"evil": {"command": "touch", "args": [str(mark)]}}})}
    )
    trust = FolderTrust(environ)
    assert make_extensions(project, trust, environ, [], ()).tools == []
    trust_all(project, environ)
    (servers,) = make_extensions(project, trust, environ, [], ()).tools
    assert isinstance(servers, McpServers)
    default = TrustFile(default_trust_path(environ))
    assert not default.launch(servers.specs[0])  # the folder's trust alone starts nothing
    assert not mark.exists()


def test_the_nearest_folder_counts_first(project: Project, environ: dict[str, str]) -> None:
    skill = "---\nname: style\ndescription: {0}\n---\n{0}\n"
    write_files(
        project.root,
        {
            ".claude/skills/style/SKILL.md": skill.format("root claude"),
            ".agents/skills/style/SKILL.md": skill.format("root agents"),
            "api/.claude/skills/style/SKILL.md": skill.format("api"),
        },
    )
    below = find_project(project.root / "api")

    def first(place: Project) -> str:
        found = find(place, environ)
        trusted = {trust_key(extension): extension.hash for extension in found.found}
        return select_extensions(found, trusted).found[0].text

    assert first(below) == "api"
    assert first(project) == "root agents"


def test_groups_with_a_library_keep_it() -> None:
    library = FolderSkills(lambda: [Extension("skill", "a", "p", "h", "d", "t")])
    group = ToolGroup("skills", library=library)
    assert group.enabled().library is group.on_demand().library is group.with_tools([]).library is library


def test_the_page_says_what_is_read_and_what_the_limits_are() -> None:
    page = (Path(__file__).parents[2] / "docs/terminal/extensions.md").read_text(encoding="utf-8")
    for name in (*PROJECT_FILES, *(f"~/{name}" for name in USER_FILES), *LAYOUTS):
        assert f"`{name}`" in page, name
    for name in ("model", "hooks", "mcpServers", "memory", "isolation"):
        assert name in IGNORED
        assert f"`{name}`" in page
    assert f"at most {MAX_STEPS}" in page
    assert f"more than {MAX_TEXT // 1024} KiB" in page
