"""``python -m certeq`` runs the command line."""

import sys


def main() -> None:
    """Run the command line; whoever stops it while it is still loading meets no traceback either."""
    try:
        from certeq.cli import main as run
    except KeyboardInterrupt:
        print("Stopped. Nothing was written by halves.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
