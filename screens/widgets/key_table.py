"""Every key of the workbench, in one table: bindings, the key bar, help, the palette and rebinding all read it.

The same letter means the same thing everywhere. Keys that terminals cannot tell apart (`ctrl+m`, `ctrl+i`, `ctrl+h`, `ctrl+j`,
`ctrl+[`) are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.binding import Binding, BindingType

from backend.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Key:
    """One action and the keys that call it."""

    name: str
    """Its id, `<scope>.<verb>`: what a key file rebinds."""
    keys: str
    """Comma-separated, as Textual names them."""
    action: str
    label: str
    """For the key bar: a word or two."""
    help: str

    @property
    def scope(self) -> str:
        return self.name.partition(".")[0]


SCOPES = {
    "app": "Everywhere",
    "screen": "Every screen",
    "list": "Lists",
    "text": "Text",
    "filter": "Filter and search",
    "catalog": "Catalog",
    "config": "Config",
    "configdiff": "Two configurations side by side",
    "results": "Results",
    "servers": "Servers",
    "rollouts": "Rollouts",
    "viewer": "Viewer",
    "diff": "Two repeats side by side",
    "jobs": "Jobs",
    "command": "Command line",
}
"""Scopes and their headings, in the order in which help shows them."""

KEYS: tuple[Key, ...] = (
    Key("app.catalog", "1", "open_screen('catalog')", "Catalog", "all components, searched as you type"),
    Key("app.config", "2", "open_screen('config')", "Config", "what will run, and who said so"),
    Key("app.servers", "3", "open_screen('servers')", "Servers", "the servers that run on this machine"),
    Key("app.rollouts", "4", "open_screen('rollouts')", "Rollouts", "follow a run"),
    Key("app.viewer", "5", "open_screen('viewer')", "Viewer", "read rollouts"),
    Key("app.results", "7", "open_screen('results')", "Results", "the runs below the folder"),
    Key("app.palette", "ctrl+p", "command_palette", "Palette", "everything that has a name"),
    Key("app.command", "colon", "command_line", "Command", "command line with completion"),
    Key("app.help", "question_mark,f1", "help", "Help", "all keys, with a search"),
    Key("app.jump", "ctrl+o", "jump", "Jump", "letters on panes and tabs"),
    Key("screen.next_pane", "tab", "next_pane", "Next pane", "go to the next pane"),
    Key("screen.previous_pane", "shift+tab", "previous_pane", "Previous pane", "go to the previous pane"),
    Key("screen.zoom", "z", "zoom", "Zoom", "one pane alone, and back"),
    Key("screen.back", "escape", "back", "Close", "close the innermost thing; never leaves the workbench"),
    Key("app.quit", "q,ctrl+q", "leave", "Quit", "leave; runs go on"),
    Key("screen.copy", "y", "copy_thing", "Copy", "copy what the cursor is on"),
    Key("screen.copy_command", "Y", "copy_command", "Copy command", "copy the `gym` command that equals this screen"),
    Key("screen.write", "w", "write_text", "Write", "write what is on screen to a text file"),
    Key("app.screenshot", "ctrl+s", "write_picture", "Picture", "write what is on screen to an SVG file"),
    Key("app.jobs", "J", "jobs", "Jobs", "what was started from here, and notices"),
    Key("app.theme", "T", "next_theme", "Theme", "next theme"),
    Key("list.down", "j,down", "cursor_down", "Down", "next row"),
    Key("list.up", "k,up", "cursor_up", "Up", "previous row"),
    Key("list.page_down", "pagedown", "page_down", "Page down", "a page down"),
    Key("list.page_up", "pageup", "page_up", "Page up", "a page up"),
    Key("list.first", "home", "first", "First", "first row"),
    Key("list.last", "end", "last", "Last", "last row"),
    Key("list.open", "enter", "open", "Open", "open the row"),
    Key("list.mark", "space", "mark", "Mark", "mark the row, or take the mark away"),
    Key("jobs.stop", "x", "stop_job", "Stop", "stop the job, after a second `x`; an evaluation finishes what is in flight"),
    Key("jobs.again", "R", "start_again", "Again", "start the job's command again, or offer it where it would replace results"),
    Key("jobs.copy_command", "Y", "copy_job", "Copy command", "copy the job's command"),
    Key("jobs.next_part", "tab", "next_part", "Next part", "jobs, log, notices"),
    Key("jobs.previous_part", "shift+tab", "previous_part", "Previous part", "notices, log, jobs"),
    Key("jobs.close", "escape", "close", "Close", "close the drawer"),
    Key("command.complete", "tab", "complete", "Complete", "the next completion"),
    Key("command.earlier", "up", "earlier", "Earlier", "an earlier line"),
    Key("command.later", "down", "later", "Later", "a later line"),
    Key("command.close", "escape", "close", "Close", "close the command line"),
    Key("text.next", "j", "next_block", "Next part", "next part of the text"),
    Key("text.previous", "k", "previous_block", "Previous part", "previous part of the text"),
    Key("text.down", "down", "scroll_down", "Down", "a line down"),
    Key("text.up", "up", "scroll_up", "Up", "a line up"),
    Key("text.page_down", "pagedown", "page_down", "Page down", "a page down"),
    Key("text.page_up", "pageup", "page_up", "Page up", "a page up"),
    Key("text.home", "home", "scroll_home", "Beginning", "beginning of the text"),
    Key("text.end", "end", "scroll_end", "End", "end of the text; a log is followed again"),
    Key("text.right", "right", "scroll_right", "Right", "to the right, when lines are not wrapped"),
    Key("text.left", "left", "scroll_left", "Left", "to the left, when lines are not wrapped"),
    Key("text.fold", "enter", "fold", "Fold", "fold or unfold the part under the cursor, or show more of it"),
    Key("text.fold_all", "e", "fold_all", "Fold all", "fold everything, or unfold everything"),
    Key("text.wrap", "W", "toggle_wrap", "Wrap", "wrap long lines, or not"),
    Key("catalog.filter", "slash", "filter", "Filter", "narrow the list: letters of names, domain:math, status:broken, -word"),
    Key("catalog.kind", "f", "next_kind", "Kind", "all components, or those of one kind, one after the other"),
    Key("catalog.needy", "F", "toggle_needy", "Problems", "only what is broken or lacks its data, or all again"),
    Key("catalog.sort", "s", "sort", "Sort", "the next order: match, name, kind, …"),
    Key("catalog.reverse", "S", "reverse", "Reverse", "the same order the other way round"),
    Key("catalog.config", "c", "configure", "Config", "open what is marked, or what the cursor is on, in Config"),
    Key("catalog.run", "r", "run", "Run…", "put a command that evaluates it on the command line"),
    Key("catalog.previous_tab", "left_square_bracket", "step_tab(-1)", "Previous tab", "the previous tab of the details"),
    Key("catalog.next_tab", "right_square_bracket", "step_tab(1)", "Next tab", "the next tab of the details"),
    Key("catalog.back", "minus", "jump_back", "Jump back", "back to where a jump began"),
    Key("catalog.pager", "o", "pager", "Pager", "the file in $PAGER"),
    Key("catalog.editor", "O", "editor", "Editor", "the file in $EDITOR, where it is broken"),
    Key("catalog.rescan", "ctrl+r", "rescan", "Look again", "look for components again now"),
    Key("viewer.previous", "left_square_bracket", "previous_rollout", "Previous", "previous rollout"),
    Key("viewer.next", "right_square_bracket", "next_rollout", "Rollout", "next rollout"),
    Key("viewer.previous_problem", "left_curly_bracket", "previous_problem", "Previous problem", "previous problem"),
    Key("viewer.next_problem", "right_curly_bracket", "next_problem", "Problem", "next problem"),
    Key("viewer.problem_kind", "F", "problem_kind", "Problems", "which rollouts count as problems"),
    Key("viewer.previous_repeat", "minus", "previous_repeat", "Previous repeat", "previous repeat of this task"),
    Key("viewer.next_repeat", "equals_sign", "next_repeat", "Repeat", "next repeat of this task"),
    Key("viewer.diff", "d", "diff", "Diff", "this repeat beside another one; again: the next one"),
    Key("viewer.markdown", "m", "markdown", "Markdown", "markdown drawn, or as written"),
    Key("viewer.raw", "v", "raw", "Raw", "the record as JSON, and back"),
    Key("viewer.fold_all", "e", "fold_all", "Fold all", "fold all turns"),
    Key("viewer.search", "slash", "search", "Search", "filter the list, or search the conversation"),
    Key("viewer.next_hit", "n", "next_hit", "Next hit", "next hit"),
    Key("viewer.previous_hit", "N", "previous_hit", "Previous hit", "previous hit"),
    Key("viewer.search_all", "ctrl+f", "search_all", "Search all", "search the text of all rollouts"),
    Key("viewer.group", "g", "group", "Group", "tasks, or single rollouts"),
    Key("viewer.sort", "s", "sort", "Sort", "next order of the list"),
    Key("viewer.reverse", "S", "reverse", "Reverse", "turn the order round"),
    Key("viewer.pager", "o", "pager", "Pager", "the whole record as JSON in $PAGER"),
    Key("viewer.reload", "ctrl+r", "reload", "Read again", "read the file again"),
    Key("diff.next", "right_curly_bracket", "next_difference", "Difference", "next difference"),
    Key("diff.previous", "left_curly_bracket", "previous_difference", "Previous difference", "previous difference"),
    Key("diff.swap", "s", "swap_sides", "Swap sides", "swap the sides"),
    Key("diff.fold_equal", "e", "fold_equal", "Fold equal", "fold or unfold what is equal"),
    Key("servers.start", "r", "start", "Start…", "put a command that starts servers on the command line"),
    Key("servers.stop", "x", "stop", "Stop", "stop the stack, after a second `x`; the first one says what depends on it"),
    Key("servers.stop_all", "X", "stop_all", "Stop all", "stop all stacks, after a second `X`"),
    Key(
        "servers.restart",
        "R",
        "restart",
        "Restart",
        "stop the stack and start it again, after a second `R`; one that has ended at once",
    ),
    Key("servers.config", "c", "configure", "Config", "open the stack's words in Config"),
    Key("servers.run", "v", "open_run", "Run", "the run that the stack serves, in Rollouts"),
    Key("servers.url", "u", "copy_url", "URL", "copy the server's address"),
    Key("servers.forget", "delete", "forget", "Forget", "take a stack that has ended off the list"),
    Key("servers.sort", "s", "sort", "Sort", "the next order within the stacks: as configured, name, CPU, memory, …"),
    Key("servers.reverse", "S", "reverse", "Reverse", "the same order the other way round"),
    Key("servers.pause", "p", "pause", "Pause", "stop looking at the servers; again goes on"),
    Key("servers.log", "l", "log", "Log", "go to the server's log"),
    Key("servers.search", "slash", "search", "Search", "search the log"),
    Key("servers.next_hit", "n", "next_hit", "Next hit", "next hit"),
    Key("servers.previous_hit", "N", "previous_hit", "Previous hit", "previous hit"),
    Key("servers.filter", "ampersand", "filter", "Only…", "only log lines with these words; -word leaves lines out"),
    Key("servers.errors", "E", "toggle_errors", "Errors", "only errors of the log, or all lines"),
    Key("servers.follow", "f", "follow", "Follow", "go to the end of the log and stay there"),
    Key("servers.wrap", "W", "toggle_wrap", "Wrap", "wrap long lines of the log, or not"),
    Key("servers.times", "t", "toggle_times", "Times", "a column with the times of the log's lines, or not"),
    Key("servers.window", "ctrl+t", "window", "Last minutes", "only the last 1, 5 or 15 minutes of the log, or all"),
    Key("servers.pager", "o", "pager", "Pager", "the whole log in $PAGER"),
    Key("rollouts.filter", "slash", "filter", "Filter", "narrow the stream: reward<1, task:183, fail:timeout, words"),
    Key("rollouts.failures", "F", "toggle_failures", "Failures", "only failed rollouts, or all again"),
    Key("rollouts.pause", "p", "pause", "Pause", "stop drawing, not the run; again goes on"),
    Key("rollouts.cancel", "x", "cancel", "Cancel", "admit no more rollouts; twice gives up what is in flight"),
    Key("rollouts.resume", "R", "resume", "Resume", "put the command that resumes this run on the command line"),
    Key("rollouts.run", "r", "run", "Run…", "put a command that starts a run on the command line"),
    Key("rollouts.metric", "h", "next_metric", "Histogram", "what the histogram shows: rewards, output tokens, time"),
    Key("rollouts.log", "l", "log", "Log", "logs of the servers, one after the other"),
    Key("rollouts.previous_run", "left_square_bracket", "step_run(-1)", "Previous run", "the previous run below the folder"),
    Key("rollouts.next_run", "right_square_bracket", "step_run(1)", "Next run", "the next run below the folder"),
    Key("config.add", "a", "add", "Add…", "add a file, a benchmark, a flag or an override; on a problem what mends it"),
    Key("config.change", "e", "change", "Change…", "change the words of a layer; in the tree, set the key under the cursor"),
    Key("config.remove", "delete", "remove", "Remove", "take a layer away"),
    Key("config.earlier", "less_than_sign", "move_layer(-1)", "Earlier", "let a layer lose to the one before"),
    Key("config.later", "greater_than_sign", "move_layer(1)", "Later", "let a layer win over the next one"),
    Key("config.stage", "v", "step_stage(1)", "Stage", "the next stage of the resolution"),
    Key("config.previous_stage", "V", "step_stage(-1)", "Previous stage", "the stage before"),
    Key("config.from", "f", "from", "From", "go to who set the value"),
    Key("config.changed", "c", "changed_only", "Changed only", "only keys that the stage changed, or all"),
    Key("config.find", "slash", "find", "Find", "find a key or a value"),
    Key("config.next_problem", "right_curly_bracket", "step_problem(1)", "Problem", "next problem, and its key"),
    Key("config.previous_problem", "left_curly_bracket", "step_problem(-1)", "Previous problem", "previous problem, and its key"),
    Key("config.diff", "d", "diff", "Diff", "this stage beside the one before; A and B choose other sides"),
    Key("config.side_a", "A", "choose_side(0)", "Side A", "choose the left side of the diff: a stage, a run, a file"),
    Key("config.side_b", "B", "choose_side(1)", "Side B", "choose the right side of the diff"),
    Key("config.edit_file", "o,O", "edit_file", "Open file", "open the file at that line in $EDITOR"),
    Key("config.run", "r", "run", "Run…", "put a run with the same words on the command line"),
    Key("config.resolve", "ctrl+r", "resolve", "Resolve again", "read the files again"),
    Key("configdiff.inline", "i", "inline", "Inline", "one column with - and +, or two"),
    Key("configdiff.all", "c", "all_keys", "All keys", "also keys that are equal, or not"),
    Key("configdiff.next", "right_curly_bracket", "step_change(1)", "Change", "next change"),
    Key("configdiff.previous", "left_curly_bracket", "step_change(-1)", "Previous change", "previous change"),
    Key("configdiff.swap", "s", "swap_sides", "Swap sides", "swap the sides"),
    Key("results.filter", "slash", "filter", "Filter", "show only the runs that match"),
    Key("results.sort", "s", "sort", "Sort", "the next order: age, state, name, …"),
    Key("results.reverse", "S", "reverse", "Reverse", "the same order the other way round"),
    Key("results.live", "l", "live", "Live view", "follow the run, or see how it went"),
    Key("results.read", "v", "read", "Read", "read the run's rollouts"),
    Key("results.again", "r", "again", "Run again", "put the run's command on the command line, with another output"),
    Key("results.resume", "R", "resume", "Resume", "put the command that continues the run on the command line"),
    Key("results.rescan", "ctrl+r", "rescan", "Look again", "look for runs again now"),
)


def bindings(scope: str) -> list[BindingType]:
    """The bindings of a scope, for a class's BINDINGS."""
    return [
        Binding(key.keys, key.action, key.label, show=False, tooltip=key.help, id=key.name) for key in KEYS if key.scope == scope
    ]


def key_named(name: str) -> Key:
    """The entry with an id; the id must exist."""
    return _BY_NAME[name]


def keys_of(name: str, keymap: Mapping[str, str]) -> list[str]:
    """The keys that call an action after rebinding by `keymap`, as Textual names them."""
    return [key.strip() for key in (keymap.get(name) or _BY_NAME[name].keys).split(",")]


def check_keymap(keymap: Mapping[str, str]) -> list[str]:
    """What is wrong with a rebinding: unknown ids, and keys that would mean two things at once. Empty when all is well."""
    problems = []
    for name in keymap:
        if name not in _BY_NAME:
            hint = did_you_mean(name, list(_BY_NAME))
            problems.append(f"unknown key id {name}" + (f"; {hint}" if hint else ""))
    keys = {key.name: (keymap.get(key.name) or key.keys).split(",") for key in KEYS}
    for scope in SCOPES:
        for widget in _WIDGET_SCOPES:
            problems += _clashes([key for key in KEYS if key.scope in (scope, widget, "app", "screen")], keys, keymap)
    return list(dict.fromkeys(problems))


def _clashes(entries: Sequence[Key], keys: Mapping[str, list[str]], keymap: Mapping[str, str]) -> list[str]:
    found = []
    owners: dict[str, str] = {}
    for entry in entries:
        for key in map(str.strip, keys[entry.name]):
            owner = owners.setdefault(key, entry.name)
            if owner != entry.name and (owner in keymap or entry.name in keymap):
                found.append(f"key {key} would mean both {owner} and {entry.name}")
    return found


_WIDGET_SCOPES = ("list", "text")
"""What has the focus on a screen: its keys and those of the screen are alive together."""
_BY_NAME = {key.name: key for key in KEYS}
