"""A self-contained HTML report: one file that works without the network."""

from gpattr.report.document import write_report

__all__ = ["write_report"]
