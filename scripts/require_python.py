"""Stop the set-up with one sentence where Python is too old or has no venv."""

import importlib.util
import sys

if sys.version_info < (3, 11):
    sys.exit(
        f"lookalike needs Python 3.11 or newer; this is {sys.version.split()[0]}. "
        "Name another one: make demo PYTHON=/path/to/python3.12"
    )
if importlib.util.find_spec("ensurepip") is None:
    sys.exit("This Python has no venv module. On Debian or Ubuntu: apt-get install python3-venv")
