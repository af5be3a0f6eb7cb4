"""Ask the server of this container whether it lives: for a health check where there is no curl. 0 if it does.

python health.py [/healthz | /readyz]
"""

import http.client
import os
import sys


def main() -> int:
    """Ask, and say it as an exit code."""
    path = sys.argv[1] if len(sys.argv) > 1 else "/healthz"
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(os.environ.get("EVERTURN_SERVER__PORT", "8000")), timeout=3
    )
    try:
        connection.request("GET", path)
        return 0 if connection.getresponse().status == 200 else 1
    except OSError:
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
