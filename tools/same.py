#!/usr/bin/env python3
"""Is what differs by chance alone said to differ? Records scenarios of the laboratory again and again (as root), compares each form's
recordings in pairs with `tcpwhy compare`, and counts the pairs of which a service is said to be slower or faster. Fails where more than
one in twenty is.

    tools/same.py [--runs 50] [SCENARIO ...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

TCPWHY = Path(__file__).parent.parent / "target/release/tcpwhy"


def record(scenario: str, folder: Path) -> list[Path]:
    """One recording of each form of a scenario, from the client's end."""
    subprocess.run([TCPWHY, "lab", scenario, "--keep", folder], check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("*/client.pcapng"))


def differs(before: Path, after: Path) -> bool:
    """Whether a service is said to be slower or faster. The exit code is 3 where it is slower."""
    ran = subprocess.run([TCPWHY, "compare", before, after, "--json"], stdout=subprocess.PIPE)
    if ran.returncode not in (0, 3):
        sys.exit(f"compare {before} {after}: status {ran.returncode}")
    return any(row["elapsed"]["verdict"] in ("slower", "faster") for row in json.loads(ran.stdout)["rows"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="of each scenario, two for a pair")
    parser.add_argument("scenarios", nargs="*", default=["split"])
    args = parser.parse_args()
    pairs, differ = Counter(), Counter()
    for scenario in args.scenarios:
        for _ in range(args.runs // 2):
            with tempfile.TemporaryDirectory() as folder:
                before, after = (record(scenario, Path(folder) / end) for end in ("before", "after"))
                for a, b in zip(before, after, strict=True):
                    pairs[a.parent.name] += 1
                    differ[a.parent.name] += differs(a, b)
    for form, count in pairs.items():
        print(f"{form}: {differ[form]} of {count} pairs differ")
    print(f"all: {differ.total()} of {pairs.total()} pairs differ")
    sys.exit(differ.total() * 20 > pairs.total())


if __name__ == "__main__":
    main()
