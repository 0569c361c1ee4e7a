#!/usr/bin/env python3
"""Builds the site of docs/ with mdBook into target/book, and follows every link on its pages.

Takes the `mdbook` on PATH; where there is none, that of requirements.txt, which pip installs under target/ and nowhere else.
"""

import html
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BOOK = ROOT / "target/book"
VENV = ROOT / "target/book-venv"


def mdbook():
    """The program's path."""
    found = shutil.which("mdbook")
    if found:
        return found
    own = VENV / "bin/mdbook"
    if not own.exists():
        print("installing mdbook with pip, into target/book-venv")
        venv.create(VENV, clear=True, with_pip=True)
        install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:"]
        subprocess.run([VENV / "bin/python", *install, "-r", HERE / "requirements.txt"], check=True)
    return own


def broken_links(site):
    """Links of the site's pages that lead nowhere, and how many there are."""
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(site.rglob("*.html"))}
    names = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    broken, followed = [], 0
    for page, text in pages.items():
        if page.name == "404.html":  # for servers: it links to their root
            continue
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            link = urllib.parse.urlsplit(html.unescape(link))
            if link.scheme or link.netloc:
                continue
            followed += 1
            to = (page.parent / urllib.parse.unquote(link.path)).resolve() if link.path else page
            is_there = to.exists() and to.is_relative_to(site)
            if not is_there or (link.fragment and to in names and link.fragment not in names[to]):
                broken.append(f"{page.relative_to(site)}: {link.geturl()}")
    return broken, followed


def main():
    subprocess.run([mdbook(), "build", "--dest-dir", BOOK, ROOT], check=True)
    listed = re.findall(r"\]\(([^)]+)\.md\)", (ROOT / "docs/SUMMARY.md").read_text(encoding="utf-8"))
    missing = [name for name in listed if not (BOOK / f"{name}.html").exists()]
    broken, followed = broken_links(BOOK)
    for name in missing:
        print(f"{name}.md has become no page", file=sys.stderr)
    for link in broken:
        print(f"leads nowhere: {link}", file=sys.stderr)
    print(f"{BOOK.relative_to(ROOT)}: {len(listed)} pages, {followed} links, {len(broken)} of them broken")
    return 1 if missing or broken or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
