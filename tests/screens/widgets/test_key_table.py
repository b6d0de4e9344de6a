"""The table of keys: ids, rebinding, clashes."""

from __future__ import annotations

from collections import Counter

import pytest
from textual.binding import Binding

from screens.widgets.key_table import KEYS, SCOPES, bindings, check_keymap, key_named

TAKEN_BY_TERMINALS = {"ctrl+m", "ctrl+i", "ctrl+h", "ctrl+j", "ctrl+left_square_bracket", "ctrl+enter"}
OVER_SCREENS = {"filter", "jobs", "command"}


def test_ids_are_unique_and_of_known_scopes() -> None:
    assert max(Counter(key.name for key in KEYS).values()) == 1
    assert {key.scope for key in KEYS} <= set(SCOPES)
    assert all(key.label and key.help and key.action for key in KEYS)


@pytest.mark.parametrize("scope", SCOPES)
def test_no_key_means_two_things_at_once(scope: str) -> None:
    """A screen's own keys beside those of the workbench; what lies over a screen takes keys before it."""
    beside = ("app",) if scope in OVER_SCREENS else ("app", "screen")
    alive = [(key, name.strip()) for key in KEYS if key.scope in (scope, *beside) for name in key.keys.split(",")]
    count = Counter(name for _, name in alive)
    assert not [(key.name, name) for key, name in alive if count[name] > 1]


def test_no_key_that_terminals_cannot_send() -> None:
    assert not {name for key in KEYS for name in key.keys.split(",")} & TAKEN_BY_TERMINALS


def test_bindings_carry_their_id_and_tooltip() -> None:
    for binding in bindings("list"):
        assert isinstance(binding, Binding)
        entry = key_named(str(binding.id))
        assert (binding.key, binding.action, binding.tooltip) == (entry.keys, entry.action, entry.help)


def test_a_rebinding_without_clash_is_fine() -> None:
    assert check_keymap({}) == []
    assert check_keymap({"app.quit": "ctrl+x"}) == []


def test_unknown_ids_get_the_nearest_one() -> None:
    (problem,) = check_keymap({"app.quitt": "x"})
    assert "unknown key id app.quitt" in problem and "app.quit" in problem


def test_clashes_are_told_between_what_is_alive_together() -> None:
    assert check_keymap({"app.quit": "z"}) == ["key z would mean both screen.zoom and app.quit"]
    assert check_keymap({"results.sort": "j"}) != []
    assert any("list.down" in problem for problem in check_keymap({"results.sort": "j"}))
    assert check_keymap({"results.sort": "s", "viewer.sort": "s"}) == []


def test_exchanged_keys_do_not_clash() -> None:
    assert check_keymap({"results.sort": "S", "results.reverse": "s"}) == []
