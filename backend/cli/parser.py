"""From the words of a command line to a parsed command, with the parser's own mistakes told the way ours are."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from backend.cli.commands import COMMANDS, CONFIG, GROUPS, SEARCH_DIR, Command, Flag, Kind
from backend.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = "component_name"
_QUOTING = ("env", "diff")
"""The command whose arguments may be words of another one."""
_SEARCH = ("search",)
"""Takes the words of an override as what to look for, unless they are spelt like an older flag."""
_HELP_WORDS = frozenset({"h=true", "help=true"})
_JSON_WORDS = frozenset({"json=true"})
"""Older spellings of flags, without the `+` or `++` in front."""
_SHOW_JSON_KEY = frozenset({("env", "resolve")})
"""Commands that print the configuration, of which `json` is a key like any other."""
_LEGACY_WORD = re.compile(r"\+{1,2}[A-Za-z_][\w.-]*=")
_SWITCHES = (Kind.SWITCH, Kind.LOCAL_SWITCH)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One call: the leaf, the flags that were given, NAME, and the overrides in the order typed."""

    command: Command
    values: dict[str, Any] = field(default_factory=dict)
    """By `Flag.destination` or `Argument.name`; only what was given."""
    names: tuple[str, ...] = ()
    """Words that are no flags and no overrides, in the order typed."""
    overrides: tuple[str, ...] = ()
    json: bool = False
    verbose: bool = False
    words: tuple[str, ...] = ()
    """The command line as typed, without the program."""

    @property
    def name(self) -> str | None:
        """The first of `names`."""
        return self.names[0] if self.names else None

    def given(self, destination: str, default: Any = None) -> Any:
        return self.values.get(destination, default)


class HelpShown(Exception):
    """Help or the like was printed; `code` is the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ParserError(UsageError):
    """A usage error with the usage line of the command it happened in."""

    def __init__(self, message: str, *, usage: str, program: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage
        self.program = program


class _Parser(argparse.ArgumentParser):
    """Raises instead of leaving, and suggests the nearest right word."""

    def error(self, message: str) -> NoReturn:
        raise ParserError(message, usage=self.format_usage(), program=self.prog, hint=_hint_for_choice(message))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise HelpShown(status)

    def flag_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]


@dataclass(frozen=True, slots=True)
class VersionAsked:
    """`gym --version`, whatever else was typed."""

    json: bool


def parse(words: Sequence[str], program: str = "gym") -> Parsed | VersionAsked:
    """The command that `words` ask for. Raises `UsageError`, or `HelpShown` after printing help."""
    tree = _build(words, program)
    namespace, rest = tree.top.parse_known_args(list(_with_quoted_arguments(words, tree)))
    as_json, verbose = namespace.json_top or namespace.json_leaf, namespace.verbose_top or namespace.verbose_leaf
    if namespace.version:
        return VersionAsked(as_json)
    command: Command | None = namespace.command
    if command is None:
        (tree.groups[namespace.group] if namespace.group else tree.top).print_help(sys.stdout)
        raise HelpShown(1)
    leaf = tree.leaves[command.path]
    if as_json and not command.takes_json:
        raise ParserError("this command has no --json", usage=leaf.format_usage(), program=leaf.prog)
    names, overrides = _sort_out(getattr(namespace, _NAME, None), rest, leaf, command)
    switched_on = {word.lstrip("+").lower() for word in overrides if word.startswith("+")}
    if not _HELP_WORDS.isdisjoint(switched_on):
        leaf.print_help(sys.stdout)
        raise HelpShown(0)
    if command.takes_json and command.path not in _SHOW_JSON_KEY and not _JSON_WORDS.isdisjoint(switched_on):
        as_json = True
    given = {key: value for key, value in vars(namespace).items() if value is not None and value is not False}
    destinations = {flag.destination for flag in _flags_of(command)} | {argument.name for argument in command.arguments}
    values = {key: value for key, value in given.items() if key in destinations}
    return Parsed(command, values, tuple(names), tuple(overrides), as_json, verbose, tuple(words))


def _with_quoted_arguments(words: Sequence[str], tree: _Tree) -> Iterator[str]:
    """The words, with a blank before those that look like a flag and are an argument: `env diff --config=a.yaml b.yaml`.

    argparse takes a word with a blank in it for an argument, whatever it begins with.
    """
    leaf = tree.leaves[_QUOTING] if any(pair == _QUOTING for pair in pairwise(words)) else None
    own = leaf.flag_names() if leaf else []
    for word in words:
        is_argument = leaf is not None and word.startswith("--") and not any(name.startswith(word.split("=")[0]) for name in own)
        yield f" {word}" if is_argument else word


@dataclass(frozen=True, slots=True)
class _Tree:
    top: _Parser
    groups: dict[str, _Parser]
    leaves: dict[tuple[str, ...], _Parser]


def _build(words: Sequence[str], program: str) -> _Tree:
    top = _Parser(
        prog=program,
        description="Evaluate language-model agents in environments.",
        epilog=f"`{program} <group> --help` lists a group's commands, `{program} <group> <command> --help` its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print versions and exit")
    _add_global(top, "top")
    top.set_defaults(command=None, json_leaf=False, verbose_leaf=False)
    group_parsers = top.add_subparsers(title="groups and commands", dest="group", metavar="<group>")
    groups: dict[str, _Parser] = {}
    leaves: dict[tuple[str, ...], _Parser] = {}
    typed = set(words)
    for group, summary in GROUPS.items():
        groups[group] = group_parsers.add_parser(group, help=summary, description=summary[0].upper() + summary[1:] + ".")
        leaf_parsers = groups[group].add_subparsers(title="commands", dest="leaf", metavar="<command>")
        for command in COMMANDS:
            if command.path[0] != group:
                continue
            leaf = leaves[command.path] = _leaf_parser(leaf_parsers, command)
            if command.path[1] in typed:  # building flags nobody asked for would double the time of `gym --help`
                _fill(leaf, command)
            leaf.set_defaults(command=command)
    for command in COMMANDS:
        if len(command.path) == 1:
            leaf = leaves[command.path] = _leaf_parser(group_parsers, command)
            if command.path[0] in typed:
                _fill(leaf, command)
            leaf.set_defaults(command=command)
    return _Tree(top, groups, leaves)


def _leaf_parser(parsers: Any, command: Command) -> _Parser:
    description = command.summary[0].upper() + command.summary[1:] + "."
    if command.takes_overrides and command.module != "backend.cli.env_status" and not command.arguments:
        description += "\n\nOverrides: any configuration key can be set with +key=value (new) or ++key=value (new or not)."
    parser: _Parser = parsers.add_parser(
        command.path[-1],
        help=command.summary,
        description=description,
        epilog=f"example: {command.example}" if command.example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _flags_of(command: Command) -> tuple[Flag, ...]:
    return (*command.flags, SEARCH_DIR) if command.takes_search_dir else command.flags


def _add_global(parser: _Parser, where: str) -> None:
    parser.add_argument(
        "--json",
        dest=f"json_{where}",
        action="store_true",
        help="print JSON" if where == "leaf" else "print JSON, where a command has it",
    )
    parser.add_argument("-v", "--verbose", dest=f"verbose_{where}", action="store_true", help="log in detail, in the servers too")


def _fill(parser: _Parser, command: Command) -> None:
    if command.name_help:
        parser.add_argument(_NAME, nargs="?", metavar=command.name_metavar, help=command.name_help)
    for argument in command.arguments:
        metavar = None if argument.choices else argument.name.upper()
        parser.add_argument(argument.name, metavar=metavar, choices=argument.choices, help=argument.help)
    for flag in _flags_of(command):
        if flag.kind in _SWITCHES:
            parser.add_argument(*flag.names, dest=flag.destination, action="store_true", help=flag.help)
        else:
            parser.add_argument(
                *flag.names,
                dest=flag.destination,
                action="append" if flag.repeatable else "store",
                metavar=flag.metavar or (None if flag.choices else flag.destination.upper()),
                choices=flag.choices,
                help=flag.help,
            )
    _add_global(parser, "leaf")
    if not command.takes_json:
        for action in parser._actions:
            if action.dest == "json_leaf":
                action.help = argparse.SUPPRESS


def _sort_out(name: str | None, rest: Iterable[str], leaf: _Parser, command: Command) -> tuple[list[str], list[str]]:
    """Tell names, overrides and mistakes apart. A word with `=`, or that starts with `+` or `~`, is never a name."""
    words = ([name] if name is not None else []) + list(rest)
    overrides = []
    names = []
    for word in words:
        if word.startswith("-"):
            flag = word.split("=", 1)[0]
            raise ParserError(
                f"unrecognized arguments: {_shown(word)}",
                usage=leaf.format_usage(),
                program=leaf.prog,
                hint=did_you_mean(flag, leaf.flag_names()),
            )
        if _is_override(word, command):
            overrides.append(word)
        else:
            names.append(word)
    if len(names) > (command.most_names if command.name_help else 0):
        raise ParserError(
            f"unexpected word: {_shown(names[-1])}",
            usage=leaf.format_usage(),
            program=leaf.prog,
            hint=_hint_for_word(names[-1], command),
        )
    return names, overrides


def _is_override(word: str, command: Command) -> bool:
    if command.takes_overrides:
        return "=" in word or word.startswith(("+", "~"))
    return command.path == _SEARCH and _LEGACY_WORD.match(word) is not None


def _shown(word: str) -> str:
    """The word without what its name says is a secret."""
    from backend.io.redact import Redactor, mask_command

    return mask_command([word], Redactor())[0]


def _hint_for_word(word: str, command: Command) -> str | None:
    if CONFIG in command.flags and os.path.isfile(word):
        return f"load a configuration file with --config {shlex.quote(word)}"
    return "an override has the form +key=value" if command.takes_overrides else None


def _hint_for_choice(message: str) -> str | None:
    """argparse lists the choices in its message; the nearest of them is the hint."""
    marker = "invalid choice: "
    if marker not in message:
        return None
    wrong, _, choices = message.partition(marker)[2].partition(" (choose from ")
    candidates = [choice.strip(" '\"") for choice in choices.rstrip(")").split(",")]
    return did_you_mean(wrong.strip("'\""), candidates)
