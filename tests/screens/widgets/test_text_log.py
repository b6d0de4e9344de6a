from screens.widgets.text_log import LogLines


def bodies(log: LogLines) -> list[str]:
    return [block.body for block in log.blocks()]


def test_lines_are_kept_in_chunks() -> None:
    log = LogLines()
    assert log.append(["a", "", "b\nc\n"]) == 4
    assert bodies(log) == ["a\n\nb\nc\n"]
    log.append(f"{number}" for number in range(98))
    first, second = log.blocks()
    assert first.body.count("\n") == 100
    assert second.body == "96\n97\n"
    log.append(["x"])
    assert log.blocks()[0] is first
    assert log.blocks()[1].key == second.key


def test_only_the_last_lines_are_kept_and_the_others_counted() -> None:
    log = LogLines(kept=1000)
    log.append(f"line {number}" for number in range(12_345))
    assert log.dropped == 11_400
    assert bodies(log)[0] == "… 11 400 earlier lines are not kept"
    assert bodies(log)[1].startswith("line 11400\n")
    assert bodies(log)[-1].endswith("line 12344\n")


def test_a_chunk_holds_lines_of_one_kind() -> None:
    log = LogLines(kept=100)
    assert log.append(["a", "b"]) == 2
    assert log.append(["bad"], "error") == 1
    log.append(["c"])
    assert [(block.kind, block.body) for block in log.blocks()] == [("plain", "a\nb\n"), ("error", "bad\n"), ("plain", "c\n")]
    assert len({block.key for block in log.blocks()}) == 3
    log.append((f"line {number}" for number in range(98)), "warning")
    assert log.dropped == 2
    assert [block.kind for block in log.blocks()] == ["muted", "error", "plain", "warning"]
