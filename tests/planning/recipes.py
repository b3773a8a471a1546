"""The type of the fixture `recipe`."""

from collections.abc import Callable

from nmt.config import Config

Recipe = Callable[..., Config]
