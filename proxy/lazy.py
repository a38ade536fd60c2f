"""Modules that are imported on first use of an attribute.

Importing the whole proxy takes a second, and commands that call a running proxy, or complete words
in a shell, do not need it.
"""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def lazy_import(name: str) -> ModuleType:
    """The module of that name, executed on first use.  Raises ModuleNotFoundError at once."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    spec.loader = LazyLoader(spec.loader)
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
