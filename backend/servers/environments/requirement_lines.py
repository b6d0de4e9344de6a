"""Requirements files, line by line: what each asks for, and where it stands.

Reads the format of pip: comments, continued lines, `-r` and `-c` files, editables, paths and URLs, markers, extras, hashes, index
options. What names this project (as `nemo-gym`, in any form) is told apart: it is here already and must never be downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from backend.errors import GymError, Place
from backend.io.redact import MASK

_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_OPTION_BEHIND = re.compile(r"\s+(?=--[a-z])")
_OWN = re.compile(r"^(?:nemo[-_.]gym|gym[-_.]tui)\s*(?:\[[^\]]*\])?\s*(?:$|[@=<>!~;(,])", re.IGNORECASE)
_NAMED_SOURCE = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\])?)\s*@\s*(?P<source>.+)$")
_OWN_PROJECT = re.compile(r"""^name\s*=\s*["'](?:nemo[-_.]gym|gym[-_.]tui)["']""", re.MULTILINE)
_CREDENTIALS = re.compile(r"""(?<=://)[^\s/"']+@""")
_URL = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|\$\{)", re.IGNORECASE)
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz")

_SHORT = {
    "-r": "--requirement",
    "-c": "--constraint",
    "-e": "--editable",
    "-i": "--index-url",
    "-f": "--find-links",
    "--pypi-url": "--index-url",
}
_WITH_VALUE = frozenset({
    "--requirement", "--constraint", "--editable", "--index-url", "--extra-index-url", "--find-links", "--no-binary", "--only-binary",
    "--trusted-host", "--use-feature",
})  # fmt: skip
_SWITCHES = frozenset({"--no-index", "--pre", "--prefer-binary", "--require-hashes"})
_WITHOUT_EFFECT = frozenset({"--prefer-binary", "--use-feature"})
_PER_REQUIREMENT = ("--hash", "--config-settings", "--config-setting", "--global-option", "--build-option")


@dataclass(frozen=True, slots=True)
class RequirementLine:
    """One requirement: `text` as the installer gets it (paths absolute), without options that stand behind it."""

    text: str
    place: Place
    is_source: bool = False
    """It names a path, an archive or a URL without a name, so only an installer can tell what it is."""
    path: Path | None = None
    """The local file or folder that it is installed from."""
    editable: bool = False
    options: str = ""
    """What stands behind it, hashes for instance."""

    @property
    def shown(self) -> str:
        """The text for people, without users and passwords."""
        return without_credentials(self.text, MASK)

    def for_installer(self) -> str:
        """The whole line for a requirements file."""
        return " ".join(filter(None, ["-e" if self.editable else "", self.text, self.options]))


@dataclass(slots=True)
class RequirementLines:
    """What a requirements file and the files it includes say."""

    lines: list[RequirementLine] = field(default_factory=list)
    constraints: list[RequirementLine] = field(default_factory=list)
    options: list[tuple[str, str]] = field(default_factory=list)
    """Index options by long name with their values, in their order."""
    names_this_project: bool = False


def read_requirements(path: Path) -> RequirementLines:
    """The requirements in `path`. Raises `GymError` with file and line for what cannot be read."""
    found = RequirementLines()
    _Reader(path.parent, found).read(path, found.lines, ())
    return found


def parse_requirement(text: str, place: Place, folder: Path) -> RequirementLine | None:
    """One requirement as a project file lists it; None when it names this project. `folder`: what relative paths start from."""
    return None if names_this_project(text) else _requirement(text.strip(), place, folder, editable=False, options="")


def names_this_project(text: str) -> bool:
    """Whether a requirement is one on NeMo Gym, or on this project by its own name, whatever version, source and extras it asks for."""
    return _OWN.match(text.strip()) is not None


def without_credentials(text: str, mask: str = "") -> str:
    """`text` with `mask` in place of the `user:password` in each of its addresses; without a mask the `@` goes too."""
    return _CREDENTIALS.sub(f"{mask}@" if mask else "", text)


def read_text(path: Path) -> str:
    """The text of a requirements file. Raises `GymError` when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise GymError(f"cannot read {path}: {error.strerror}", place=Place(str(path))) from error
    except UnicodeDecodeError as error:
        raise GymError("this file is no UTF-8 text", hint="save it as UTF-8", place=Place(str(path))) from error


class _Reader:
    def __init__(self, server_folder: Path, found: RequirementLines) -> None:
        self.found = found
        self.server_folder = server_folder
        self.in_checkout = (server_folder / ".." / ".." / "pyproject.toml").is_file()

    def read(self, path: Path, into: list[RequirementLine], including: tuple[Path, ...]) -> None:
        if path in including:
            raise GymError(f"{path.name} includes itself", place=Place(str(including[-1])))
        for number, line in _logical_lines(read_text(path)):
            place = Place(str(path), number)
            if line.startswith("-"):
                self._read_option(line, place, path, into, (*including, path))
            else:
                self._add(line, place, path.parent, into, editable=False)

    def _read_option(self, line: str, place: Place, path: Path, into: list[RequirementLine], including: tuple[Path, ...]) -> None:
        name, value = _split_option(line)
        if name not in _WITH_VALUE and name not in _SWITCHES:
            known = sorted(_WITH_VALUE | _SWITCHES)
            raise GymError(
                f"`{name}` is not an option of a requirements file", place=place, hint=f"known are: {', '.join(known)}"
            )
        if (name in _WITH_VALUE) != bool(value):
            raise GymError(f"`{name}` {'needs a' if name in _WITH_VALUE else 'takes no'} value", place=place)
        if name == "--editable":
            self._add(value, place, path.parent, into, editable=True)
        elif name in ("--requirement", "--constraint"):
            included = path.parent / value
            if not included.is_file():
                raise GymError(f"the included file {included} does not exist", place=place)
            self.read(included.resolve(), self.found.constraints if name == "--constraint" else into, including)
        elif name not in _WITHOUT_EFFECT:
            if name == "--find-links" and not _URL.match(value):
                value = str((path.parent / os.path.expanduser(value)).resolve())
            self.found.options.append((name, value))

    def _add(self, line: str, place: Place, folder: Path, into: list[RequirementLine], *, editable: bool) -> None:
        text, *behind = _OPTION_BEHIND.split(line)
        for option in behind:
            if not option.startswith(_PER_REQUIREMENT):
                raise GymError(f"`{option.split('=')[0].split()[0]}` cannot stand behind a requirement", place=place)
        if names_this_project(text):
            self.found.names_this_project = True
            return
        if "../.." in text and (not self.in_checkout or self._is_this_project(text)):
            # It points from a component folder to the project it once stood in.
            self.found.names_this_project = True
            return
        into.append(_requirement(text, place, folder, editable=editable, options=" ".join(behind)))

    def _is_this_project(self, text: str) -> bool:
        named = _NAMED_SOURCE.match(text)
        project = self.server_folder / (named["source"] if named else text.split("[")[0]) / "pyproject.toml"
        return project.is_file() and _OWN_PROJECT.search(read_text(project)) is not None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with continuations joined and comments gone, each with the number of the line it begins at."""
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        continued = raw.endswith("\\") and not raw.lstrip().startswith("#")
        start, before = begun or (number, "")
        line = before + (raw[:-1] if continued else raw)
        begun = (start, line) if continued else None
        if not continued and (stripped := _COMMENT.sub("", line).strip()):
            yield start, stripped
    if begun is not None and (stripped := _COMMENT.sub("", begun[1]).strip()):
        yield begun[0], stripped


def _split_option(line: str) -> tuple[str, str]:
    """The long name of an option and its value, however they are joined."""
    word, value = re.match(r"([^\s=]+)[\s=]*(.*)", line).groups()  # type: ignore[union-attr]  # a line is never empty
    if not word.startswith("--") and len(word) > 2:
        word, value = word[:2], (word[2:] + line[len(word) :]).strip()
    return _SHORT.get(word, word), value.strip("\"' ")


def _requirement(text: str, place: Place, folder: Path, *, editable: bool, options: str) -> RequirementLine:
    named = _NAMED_SOURCE.match(text)
    if named and not _URL.match(named["source"]):
        path = _local(named["source"].partition(" ;")[0].strip(), folder, place)
        marker = named["source"].partition(" ;")[2]
        shown = f"{named['name'].strip()} @ {path.as_uri()}" + (f" ;{marker}" if marker else "")
        return RequirementLine(shown, place, is_source=editable, path=path, editable=editable, options=options)
    if named is None and (editable or _is_source(text)):
        if _URL.match(text) and not text.startswith("file:"):
            return RequirementLine(text, place, is_source=True, editable=editable, options=options)
        bare, extras = re.match(r"(.*?)(\[[^\]]*\])?$", text).groups()  # type: ignore[union-attr]  # every text matches
        path = _local(bare, folder, place)
        return RequirementLine(f"{path}{extras or ''}", place, is_source=True, path=path, editable=editable, options=options)
    return RequirementLine(text, place, is_source=editable, path=_file_of(text, place), editable=editable, options=options)


def _is_source(text: str) -> bool:
    return bool(_URL.match(text)) or text.startswith((".", "/", "~")) or text.endswith(_ARCHIVES) or os.sep in text.split(";")[0]


def _file_of(text: str, place: Place) -> Path | None:
    """The local file behind `name @ file:///…`."""
    named = _NAMED_SOURCE.match(text)
    if named is None or not named["source"].startswith("file:"):
        return None
    return _local(named["source"].partition(" ;")[0].strip(), Path(os.sep), place)


def _local(text: str, folder: Path, place: Place) -> Path:
    from urllib.parse import unquote

    bare = unquote(urlsplit(text).path) if text.startswith("file:") else text
    path = Path(os.path.abspath(folder / os.path.expanduser(os.path.expandvars(bare))))
    if not path.exists():
        raise GymError(f"the requirement `{text}` names {path}, which does not exist", place=place)
    return path
