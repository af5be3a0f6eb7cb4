"""Files of a project in the layouts of three assistants, in the form in which people publish them: skills, agents, commands."""

from __future__ import annotations

from pathlib import Path

SKILLS: dict[str, str] = {
    ".claude/skills/pdf/SKILL.md": """\
---
name: pdf
description: Comprehensive PDF manipulation toolkit for extracting text and tables, creating new PDFs, merging/splitting documents, and handling forms. When Claude needs to fill in a PDF form or programmatically process, generate, or analyze PDF documents at scale.
license: Proprietary. LICENSE.txt has complete terms
---

# PDF Processing Guide

## Overview

This guide covers essential PDF processing operations. For advanced features see reference.md. If you need to fill out a
PDF form, read forms.md and follow its instructions.

```python
from pypdf import PdfReader
reader = PdfReader("document.pdf")
print(f"Pages: {len(reader.pages)}")
```
""",
    ".claude/skills/commit-helper/SKILL.md": """\
---
name: commit-helper
description: Generates clear commit messages from git diffs. Use when: writing commit messages, or reviewing staged changes
allowed-tools: Bash(git diff:*), Bash(git log:*), Read
---

# Generating commit messages

1. Run `git diff --staged` to see changes
2. Suggest a message with a summary under 50 characters
""",
    ".claude/skills/webapp-testing/SKILL.md": """\
---
name: webapp-testing
description: >-
  Toolkit for interacting with and testing local web applications using
  Playwright. Supports verifying frontend functionality.
license: Complete terms in LICENSE.txt
metadata:
  author: example-org
  version: "1.0"
---

**Helper scripts available**: `scripts/with_server.py` manages the server lifecycle.
""",
    ".agents/skills/data-analysis/SKILL.md": """\
---
name: data-analysis
description: "Analyze datasets, generate charts, and create summary reports: use when the user works with CSV files."
compatibility: Requires Python 3.11+ and pandas
metadata:
  category: data
allowed-tools: Bash(python:*) Read
---
## When to use

The user has a CSV. See [the reference](references/REFERENCE.md).
""",
    ".agents/skills/release-notes/SKILL.md": """\
---
# written by hand
name: 'release-notes'
description: Write release notes from the history. It's short.
---
Group the commits by area, newest first.
""",
    ".opencode/skills/git-release/SKILL.md": """\
---
name: git-release
description: Create consistent releases and changelogs
license: MIT
compatibility: opencode
metadata:
  audience: maintainers
  workflow: github
---

## What I do

- Draft release notes from merged PRs
- Propose a version bump
""",
    ".opencode/skill/sql-style/SKILL.md": """\
---
name: sql-style
description: |
  House style for SQL.
  Use it for migrations.
---
Keywords in capitals.
""",
    ".claude/skills/team/frontend-design/SKILL.md": """\
---
name: frontend-design
description: Create distinctive, production-grade frontend interfaces with high design quality (websites, landing pages, dashboards).
user-invocable: true
disable-model-invocation: false
argument-hint: [component-name]
---

Think about the context before coding. Build $ARGUMENTS.
""",
}
"""Eight skills in three layouts."""

BESIDE: dict[str, str] = {
    ".claude/skills/pdf/reference.md": "# Reference\nUse pypdfium2 for rendering.\n",
    ".claude/skills/pdf/forms.md": "Fill in the fields.\n",
    ".claude/skills/pdf/scripts/fill.py": "print('fill')\n",
    ".claude/skills/webapp-testing/scripts/with_server.py": "print('server')\n",
    ".agents/skills/data-analysis/references/REFERENCE.md": "# Columns\n",
}

AGENTS: dict[str, str] = {
    ".claude/agents/code-reviewer.md": """\
---
name: code-reviewer
description: Expert code review specialist. Use proactively after writing or modifying code.
tools: Read, Grep, Glob, Bash
model: inherit
---

You are a senior code reviewer. Run git diff first.
""",
    ".opencode/agents/docs-writer.md": """\
---
description: Writes and maintains project documentation
mode: subagent
model: anthropic/claude-sonnet-4-5
temperature: 0.1
tools:
  bash: false
permission:
  webfetch: deny
---

You are a technical writer.
""",
    ".agents/agents/planner.md": """\
---
description: Plans a change without making it
permissionMode: plan
maxTurns: 12
---
Write a plan.
""",
}

COMMANDS: dict[str, str] = {
    ".claude/commands/fix-issue.md": """\
---
description: Fix a GitHub issue
argument-hint: [issue-number]
allowed-tools: Bash(git:*)
---
Fix issue #$1 following our standards. Everything: $ARGUMENTS
""",
    ".claude/commands/frontend/component.md": "Create a component called $ARGUMENTS.\n",
    ".opencode/command/test.md": """\
---
description: Run tests with coverage
agent: build
---
Here are the current results: !`npm test`

Suggest fixes.
""",
    ".agents/commands/explain.md": "Explain it briefly.\n",
}


def write_files(root: Path, *groups: dict[str, str]) -> None:
    """Write files below a folder."""
    for group in groups:
        for name, text in group.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def write_project(root: Path) -> None:
    """Write all of them."""
    write_files(root, SKILLS, BESIDE, AGENTS, COMMANDS)
