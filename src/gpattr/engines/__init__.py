"""Tables of any size: one function from frame to frame, run by the engine that holds the table."""

from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.map_table import map_table

__all__ = ["FrameFunction", "map_table"]
