"""What works without the extra: everything but the training itself, and that says what to install."""

from __future__ import annotations

import subprocess
import sys


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_arithmetic_losses_and_settings_need_no_torch():
    code = (
        "import sys\n"
        "from lookalike.train import LOSSES, HeadSettings, Material, Settings, make_loss\n"
        "from lookalike.train import triplets, sampling, pseudo, judge\n"
        "Settings(loss=make_loss('supcon'), head=HeadSettings(dim=64))\n"
        "print([name for name in ('torch', 'faiss', 'onnxruntime') if name in sys.modules])\n"
    )
    assert python(code) == "[]"


def test_training_without_torch_names_the_extra():
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import lookalike.train\n"
        "try:\n"
        "    lookalike.train.train\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert python(code) == (
        "MissingExtraError Training needs an optional dependency that is not installed. "
        "Install it with: pip install 'lookalike[train]'"
    )


def test_a_name_that_is_not_there_is_an_attribute_error():
    code = "import lookalike.train\nprint(hasattr(lookalike.train, 'tarin'))"
    assert python(code) == "False"
