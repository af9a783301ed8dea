"""`python -m simdims` is `simdims`."""

import sys

from simdims.cli import main

if __name__ == "__main__":
    sys.exit(main())
