"""The service of the FastAPI guide, as it is, with a model at an address of its own: `uvicorn tools.chaos.guide_service:app`."""

from __future__ import annotations

import os

from docs_src.guides import fastapi_first

from everturn import get_model
from everturn.models import Model


def _make_model() -> Model:
    return get_model(os.environ["CHAOS_MODEL"], base_url=os.environ["CHAOS_MODEL_URL"], key="test")


fastapi_first.make_model = _make_model
app = fastapi_first.app
