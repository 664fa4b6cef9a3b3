"""Encoders: frames with categories and dates as numeric columns."""

from gpattr.encoders.dates import Dates
from gpattr.encoders.encoder import Encoder

__all__ = ["Dates", "Encoder"]
