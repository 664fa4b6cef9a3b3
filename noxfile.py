#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox"]
# ///
"""Sessions for every check of the project: ``nox -l`` lists them, ``nox`` runs lint and quick.

Each session makes its own environment, by uv where it is installed.
"""

import nox

nox.needs_version = ">=2024.10"
nox.options.default_venv_backend = "uv|virtualenv"

OWN = {  # libraries that most people do not have: their tests and their pages
    "clients": (
        ("ax", "baybe", "bofire", "george", "openturns", "pymc", "skopt", "smt"),
        ("ax", "baybe", "bofire", "george", "openturns", "pymc", "scikit_optimize", "smt"),
    ),
    "gpflow": (("gpflow", "gpy", "trieste"), ("gpflow", "gpy", "trieste")),
}


def libraries(name: str) -> list[str]:
    """Return the files of tests, and the pages, of libraries that have their own environment."""
    tests, pages = OWN[name]
    return [
        *(f"tests/adapters/test_{each}.py" for each in tests),
        *(f"docs/libraries/{each}.md" for each in pages),
    ]


@nox.session(default=True)
def lint(session: nox.Session) -> None:
    """Check style, format and types."""
    session.install("-e", ".[test-all]", "pre-commit")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure")
    session.run("pyright")


@nox.session(default=True)
def quick(session: nox.Session) -> None:
    """Run the tests without the slow ones: a few minutes."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def full(session: nox.Session) -> None:
    """Run all tests, the pages of the documentation among them, with coverage."""
    session.install("-e", ".[test-all]")
    measured = ("--cov=gpattr", "--cov-report=term-missing:skip-covered")
    session.run("pytest", "-m", "", *measured, *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into the folder site; warnings are errors."""
    session.install("-e", ".[docs]")
    build = ("sphinx-build", "-W", "--keep-going", "docs", "site")
    session.run(*build, *session.posargs, env={"MPLBACKEND": "Agg"})


@nox.session(default=False)
def clients(session: nox.Session) -> None:
    """Test optimisers and less common libraries."""
    session.install("-e", ".[test-clients]")
    session.run(
        "pytest",
        "-p",
        "no:dash",  # Dash brings a plugin for pytest that needs more than Dash
        "-m",
        "",
        *libraries("clients"),
        *session.posargs,
        env={"PYTENSOR_FLAGS": "mode=FAST_COMPILE"},
    )


@nox.session(default=False)
def gpflow(session: nox.Session) -> None:
    """Test GPflow, GPy and Trieste, which need NumPy 1."""
    session.install("-e", ".[test-gpflow]")
    session.run("pytest", "-m", "", *libraries("gpflow"), *session.posargs)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Measure gpattr against other libraries; --quick takes about a minute."""
    session.install("-e", ".[bench]")
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build, check and try wheel and source distribution, also with the oldest dependencies."""
    session.install("uv")
    session.run(".ci/package", session.create_tmp(), external=True)


@nox.session(default=False)
def lowest(session: nox.Session) -> None:
    """Run core tests with the oldest dependencies that are allowed."""
    session.install("uv")
    session.run(".ci/lowest", session.create_tmp(), external=True)


if __name__ == "__main__":
    nox.main()
