"""Runs a program of everturn with the scripted provider as its vendor: what OPENAI_BASE_URL is for the peers.

A key of the environment goes to its vendor's own address only (decision 0023), so the address is changed here.
"""

import os
import runpy
import sys

from msgspec.structs import replace

from everturn.models import registry

vendor = replace(registry.VENDORS["openai"], base_url=os.environ["OPENAI_BASE_URL"])
registry.VENDORS = {**registry.VENDORS, "openai": vendor}
sys.argv.pop(0)
if sys.argv[0] == "-m":
    sys.argv.pop(0)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
