"""A self-contained HTML report: one file that explains a model to people, without the network."""

from gpattr.report.document import write_report

__all__ = ["write_report"]
