"""The documents as a site: every page is reached, and every link between them leads somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lookalike import __version__

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]


def prose(path):
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path):
    titles = re.findall(r"^#+ (.+)$", prose(path), flags=re.M)
    words = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", each) for each in words}


def links(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" not in target:
            yield target


def test_every_page_is_in_the_navigation_once():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    named = re.findall(r"(\S+\.md)$", navigation, flags=re.M)
    assert sorted(named) == [page.relative_to(DOCS).as_posix() for page in PAGES]


def test_every_link_and_picture_of_the_documents_is_there():
    broken = []
    for page in [*PAGES, *OTHERS]:
        for target in links(page):
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_no_page_of_the_site_leads_out_of_its_folder():
    outside = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in links(page)
        if target.partition("#")[0] and not (page.parent / target.partition("#")[0]).resolve().is_relative_to(DOCS)
    ]
    assert outside == []


def test_the_site_builds_without_a_warning(tmp_path):
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs and its theme are not installed (requirements/test.txt)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    built = {path.relative_to(tmp_path / "site").with_suffix(".md").as_posix() for path in tmp_path.rglob("*.html")}
    assert built == {*(page.relative_to(DOCS).as_posix() for page in PAGES), "404.md"}


def test_the_citation_names_the_version_of_the_package():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.M)
    assert cited is not None
    assert cited.group(1) == __version__
