"""`python -m fuzz --seconds 60 --seed 1`: run random programs and print each difference, shrunk."""

from __future__ import annotations

import argparse
import faulthandler
import sys

from fuzz.checking import ONLY, check
from fuzz.flavours import FLAVOURS
from fuzz.judging import IGNORED
from fuzz.report import LEAVE, Report
from fuzz.seed import of_commit
from fuzz.supervision import heed_warnings, supervise


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=of_commit(), help="default: the commit")
    parser.add_argument("--program", type=int, help="run this program only, and print it")
    parser.add_argument("--first", type=int, default=0, help="the first program")
    parser.add_argument("--without", default="", help="fields not to compare: node,stride")
    parser.add_argument("--flavour", default="", choices=("", *FLAVOURS), help="this flavour only")
    parser.add_argument("--leave", help="leave out differences of programs with this pattern")
    faulthandler.enable()
    heed_warnings()
    options = parser.parse_args()
    ONLY[0] = options.flavour
    LEAVE[:] = filter(None, [options.leave])
    IGNORED.update(filter(None, options.without.split(",")))
    report = Report(options.seed)
    if options.program is not None:
        outcome, _ = check(options.seed, options.program)
        print(outcome.program.printed())
        report.add(options.program)
        print(*report.found.values(), sep="\n")
    else:
        supervise(report, options.seconds, options.first)
    print(report.summary())
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
