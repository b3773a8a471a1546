"""Puts faster modules in the place of those of the paper; they have the same weights."""

import copy
from collections.abc import Mapping
from typing import TypeVar

from torch import nn

from nmt.kernels.python_code import HOOKS

_Model = TypeVar("_Model", bound=nn.Module)


def share_weights(model: _Model) -> _Model:
    """Copy the modules of a model; the copy has the weights of `model` itself, and its hooks."""
    shared: list[object] = list(model.parameters())
    for module in model.modules():
        shared += [hook for kind in HOOKS for hook in getattr(module, kind).values()]
    # the second argument has what `deepcopy` takes for copied already, and so does not copy
    return copy.deepcopy(model, {id(each): each for each in shared})


def use_faster_modules(model: nn.Module, faster: Mapping[type, type]) -> None:
    """Give each module of `model` whose class is a key of `faster` the class that stands there.

    The new class has no weights and no other attributes of its own, so the names of weights stay.
    """
    for module in model.modules():
        module.__class__ = faster.get(type(module), type(module))
