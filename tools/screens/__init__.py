"""Screenshots of every page and state of the web UI, as contact sheets to look at: `python -m tools.screens DIR`."""
