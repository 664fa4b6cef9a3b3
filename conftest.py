"""Runs every code block of the README and the docs, and every example in a docstring, in a folder
of their own.
"""

import os
import tempfile

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # one thread for each of the processes that share the machine
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser


def enter_folder(namespace):
    namespace["_home"], namespace["_folder"] = os.getcwd(), tempfile.TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def leave_folder(namespace):
    os.chdir(namespace["_home"])
    namespace["_folder"].cleanup()


pages = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["*.md"],
    excludes=["CHANGELOG.md"],
    setup=enter_folder,
    teardown=leave_folder,
)
docstrings = Sybil(parsers=[DocTestParser()], patterns=["src/**/*.py"])

pytest_collect_file = (pages + docstrings).pytest()
