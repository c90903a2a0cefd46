"""Which models there are, whether they are ready on this machine, and making them ready."""

from skillstate_local.registry.load import Registry, load_registry
from skillstate_local.registry.prepare import pull
from skillstate_local.registry.progress import SILENT, Phase, Progress
from skillstate_local.registry.readiness import Status, model_identity, ready_path, require_path, status
from skillstate_local.registry.resources import cache_root, resource
from skillstate_local.registry.schema import Limits, Model

__all__ = [
    "SILENT",
    "Limits",
    "Model",
    "Phase",
    "Progress",
    "Registry",
    "Status",
    "cache_root",
    "load_registry",
    "model_identity",
    "pull",
    "ready_path",
    "require_path",
    "resource",
    "status",
]
