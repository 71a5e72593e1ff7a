"""``python -m certeq`` is the command line."""

from certeq.cli import main

if __name__ == "__main__":
    main()
