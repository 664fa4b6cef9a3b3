"""One page that explains a model to people: a file of its own, without the network."""

from gpattr.report.document import write_report

__all__ = ["write_report"]
