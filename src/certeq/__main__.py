"""``python -m certeq``, or ``certeq``, runs the command line."""

import os
import signal
import sys
import threading

from certeq.base.manners import interrupts, open_streams, streams


def main() -> None:
    """Run the command line; whoever stops it while it is still loading, or leaving, meets no traceback either."""
    open_streams()
    code = 0
    with interrupts(work=False), streams():
        from certeq.cli import main as run

        try:
            run()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))  # all is done but the leaving
    sys.exit(code)


if __name__ == "__main__":
    main()
