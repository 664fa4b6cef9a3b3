"""Runs every code block of the README and the docs, and every example in a docstring, in a folder
of their own.
"""

import ast
import doctest
import os
import re
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # one thread for each of the processes that share the machine
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # shap compiles for seconds what takes milliseconds

import pytest
from sybil import Region, Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def enter_folder(namespace):
    namespace["_home"], namespace["_folder"] = os.getcwd(), tempfile.TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def leave_folder(namespace):
    os.chdir(namespace["_home"])
    namespace["_folder"].cleanup()


class InOrder(PythonCodeBlockParser):
    """Blocks that run those before them first, where another process has had these.

    Blocks of a page that skips some are left alone: which are skipped is known in order only.
    """

    def __call__(self, document):
        for region in super().__call__(document):
            if "<!--- skip:" not in document.text:
                region.evaluator = self.after_the_others(region.evaluator)
            yield region

    @staticmethod
    def after_the_others(evaluator):
        def evaluate(example):
            done = example.namespace.setdefault("_done", set())
            if example.start in done:  # before a later one, which may have changed its variables
                return None
            for earlier in example.document.examples():
                if earlier.start < example.start and earlier.start not in done:
                    earlier.evaluate()
            done.add(example.start)
            return evaluator(example)

        return evaluate


def docstring_examples(docstring):
    """Find the examples of a docstring: one region, which runs by itself, as it is shown.

    A method that imports nothing goes on from the example of its class, above it.
    """
    if ">>> " in docstring.text:
        test = doctest.DocTestParser().get_doctest(docstring.text, {}, "example", docstring.path, 0)
        if ">>> import " not in docstring.text:
            test.examples[:0] = examples_of_class(docstring.path, docstring.text)
        yield Region(0, len(docstring.text), test, run_docstring)


def examples_of_class(path, text):
    """The examples of the class of which a method has this docstring; none for a function."""
    for node in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            if text in [ast.get_docstring(method, clean=False) for method in methods]:
                return doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
    return []


def run_docstring(example):
    """Run the lines of one docstring in a folder of their own; return what went wrong."""
    found = []
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
                example.parsed, out=found.append
            )
        finally:
            os.chdir(home)
    text = "".join(found)
    skip_without_package(text)
    return text or None


def skip_without_package(text):
    """Skip a test that failed with this text for want of an optional package, by its name."""
    needed = re.search(r"needs ([\w-]+), which is not installed", text)
    if needed:
        try:
            distribution(needed[1])
        except PackageNotFoundError:
            pytest.skip(needed[0])


# Pages whose library most people do not have: they run in the environments that `.ci/run` makes.
NEEDED = {
    "ax": "ax",
    "baybe": "baybe",
    "bofire": "bofire",
    "explainerdashboard": "explainerdashboard",
    "george": "george",
    "gpflow": "gpflow",
    "gpy": "GPy",
    "openturns": "openturns",
    "pymc": "pymc",
    "scikit_optimize": "skopt",
    "smt": "smt",
    "trieste": "trieste",
}

pages = Sybil(
    parsers=[InOrder(), SkipParser()],
    patterns=["*.md"],
    excludes=["CHANGELOG.md"],
    setup=enter_folder,
    teardown=leave_folder,
)
docstrings = Sybil(parsers=[docstring_examples], path="src", patterns=["*.py"])


def pytest_configure(config):
    """JAX compiles quickly, and once, what the processes and later runs all need."""
    quick = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    os.environ.setdefault("XLA_FLAGS", quick)
    if not config.pluginmanager.hasplugin("cacheprovider"):
        return
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("jax")))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Tests of packages that not everyone has are skipped where these are missing."""
    try:
        return (yield)
    except ImportError as error:
        skip_without_package(str(error))
        raise


def pytest_runtest_teardown(item):
    """Close the figures of a page or of an example, before pyplot warns of too many."""
    shown = not item.path.is_relative_to(item.config.rootpath / "tests")
    if shown and "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_modifyitems(config, items):
    """Skip pages without their library, and mark as slow what is slow as a whole.

    These are the pages of the documentation, and scikit-learn's checks of all estimators but one.
    """
    for item in items:
        page = item.path.suffix == ".md" and item.path.parent != config.rootpath
        library = NEEDED.get(item.path.stem) if page else None
        if library is not None and find_spec(library) is None:
            reason = f"{library} is tested in an environment of its own"
            item.add_marker(pytest.mark.skip(reason=reason))
        checks = item.name.startswith("test_scikit_learn_checks")
        if page or (checks and item.path.stem != "test_gp_regressor"):
            item.add_marker("slow")


pytest_collect_file = (pages + docstrings).pytest()
