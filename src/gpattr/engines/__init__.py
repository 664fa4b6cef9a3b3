"""Tables of any size: one function from frame to frame, run by the engine that holds the table."""

from gpattr.engines.frame_function import FrameFunction

__all__ = ["FrameFunction"]
