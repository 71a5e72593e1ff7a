"""``python -m certeq.worlds.examples [DIRECTORY]``: make the examples anew."""

import sys
from pathlib import Path

from certeq.worlds.examples import write

if __name__ == "__main__":
    for place in write(*map(Path, sys.argv[1:2])):
        print(place)
