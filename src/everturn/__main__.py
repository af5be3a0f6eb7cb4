"""`python -m everturn` is the same as `everturn`."""

import sys

from everturn.cli import main

sys.exit(main())
