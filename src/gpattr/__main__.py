"""``gpattr`` and ``python -m gpattr``: the command line, or one sentence on what it lacks."""

import sys

from gpattr._core.optional import optional
from gpattr.exceptions import OptionalPackageError


def main() -> None:
    """Run the command line."""
    try:
        for package in ("typer", "rich"):
            optional(package, "The command line")
    except OptionalPackageError as error:
        sys.exit(str(error))  # written to the error stream, with exit code 1
    from gpattr.cli import app

    app(prog_name="gpattr")


if __name__ == "__main__":
    main()
