"""Runs every code block of the README and the docs, and every example in a docstring."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

pages = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], excludes=["CHANGELOG.md"])
docstrings = Sybil(parsers=[DocTestParser()], patterns=["src/**/*.py"])

pytest_collect_file = (pages + docstrings).pytest()
