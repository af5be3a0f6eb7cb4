"""Models of an app, by name. The one without a name is its default."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING

from everturn.core.modality import MODALITIES, Modality, modality_of
from everturn.core.ports import Model
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.limiter.bucket import LimiterObserver

log = logging.getLogger(__name__)


def as_model(model: Model | str) -> Model:
    """A model, or the one with this name.

    Raises:
        ConfigError: it is not a model, or there is none with this name.
    """
    if isinstance(model, str):
        from everturn.models.registry import get_model  # only callers with a name pay for the import of the vendors

        return get_model(model)
    if inspect.isclass(model) or not hasattr(model, "stream") or not hasattr(model, "name"):
        raise ConfigError(f"{model!r} is not a model; it needs a `name` and an async generator `stream(request)`")
    return model


def load_limiter_metrics() -> LimiterObserver:
    """Import metrics with the first model that has something to load, and not with Everturn."""
    from everturn.telemetry.limiter_metrics import LimiterMetrics

    return LimiterMetrics()


class AppModels:
    """The models that an app was given, and those that turns have asked for since."""

    def __init__(self, default: Model | str | None) -> None:
        self._models: dict[str, Model] = {}
        self._loaded: set[str] = set()  # names
        if default is not None:
            model = as_model(default)
            self._models = {"": model, model.name: model}

    def get(self, name: str) -> Model:
        """A model by its name; "" is the default.

        Raises:
            ConfigError: no default is set, or there is no model with this name.
        """
        if name not in self._models:
            if not name:
                raise ConfigError("no model is set: use App(model), App(agents=[Agent(model)]) or send(model=…)")
            self._models[name] = as_model(name)
        return self._models[name]

    def find(self, model: Model | str) -> Model:
        """A model that the app knows by its name, or another one, which it does not remember."""
        return self._models[model] if isinstance(model, str) and model in self._models else as_model(model)

    def add(self, model: Model | str) -> str:
        """Add a model, and return its name; the name of a known model is returned as it is."""
        if isinstance(model, str) and model in self._models:
            return model
        model = as_model(model)
        self._models[model.name] = model
        return model.name

    def add_missing(self, name: str, model: Model) -> None:
        """Add a model under a name, unless there is one."""
        self._models.setdefault(name, model)

    def remove(self, name: str) -> None:
        """Forget a model."""
        self._models.pop(name, None)
        self._loaded.discard(name)

    def modality_of(self, name: str) -> Modality:
        """The type of the model with this name; `chat` for an unknown model, unless its name has a type.

        Raises:
            ConfigError: the name has a type, and no model can be found by it.
        """
        try:
            return modality_of(self.get(name))
        except ConfigError:
            if name.rpartition("@")[2] in MODALITIES:
                raise
            return "chat"

    @property
    def has_to_load(self) -> bool:
        """Whether a model has something to import that is not imported yet."""
        return any(name not in self._loaded and hasattr(model, "load") for name, model in self._models.items())

    def load(self) -> None:
        """Import what the first request needs, so that no turn waits for it. See `models.load`."""
        for name, model in list(self._models.items()):
            if name not in self._loaded:
                self._loaded.add(name)
                try:
                    if (load := getattr(model, "load", None)) is not None:
                        load_limiter_metrics()
                        load()
                except Exception as error:  # a request will tell
                    log.warning("model %s could not be loaded before its first request: %s", model.name, error)
