"""The encoder that ships with the package."""

from lookalike.embed.builtin.effnet_lite0 import BuiltinEncoder

__all__ = ["BuiltinEncoder"]
