"""A notebook widget: sliders for the values of a row, its prediction and its explanation."""

from gpattr.widget.make import make_widget

__all__ = ["make_widget"]
