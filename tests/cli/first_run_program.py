"""`everturn` alone, on a machine with one server for models at most: at the port that is the first word, or nowhere."""

import sys
from pathlib import Path

from everturn.cli import first_run, main
from everturn.config.discovery import LocalModelServer

if __name__ == "__main__":
    port = int(sys.argv[1])
    first_run.LOCAL_SERVERS = (LocalModelServer("Ollama", port, "ollama", "/api/tags"),) if port else ()
    first_run.SYSTEM_FILE = Path("/nowhere/everturn.toml")
    sys.exit(main([]))
