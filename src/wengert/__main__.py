"""``python -m wengert``: the command line."""

import sys

from wengert.cli import main

sys.exit(main())
