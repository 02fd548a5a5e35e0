"""The report on a cure, as a document and in a terminal: what was proven, and all that was tried."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console

from uncork.model.database.missing import Missing
from uncork.model.results.cure import PRACTICAL, Change, CureResult, StatementEffect, Tried
from uncork.model.template_words import short_templates
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text
from uncork.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Facts,
    Fold,
    ForestChart,
    ForestMark,
    Legend,
    Paragraph,
    Section,
    Table,
    Value,
    filled_section,
)
from uncork.report.cells import bytes_cell, column, count_cell, duration_cell, header, number, table_of
from uncork.report.cure.answer import (
    VERDICTS,
    bill_span,
    change_words,
    cure_steps,
    effect_cell,
    effect_sentence,
    gain_cell,
    handed_path,
    named_changes,
    net_ratio,
    operation_word,
    origin_text,
    price_words,
    proven_change,
    reason_sentence,
    saved_words,
    seconds_text,
    state_text,
    worst_effect,
)
from uncork.report.findings import finding_blocks, missing_sentence
from uncork.report.headline import split_answer
from uncork.report.words import SYMBOLS, TONES, capitalised, effect_text
from uncork.report.write.markdown import block_lines, escape, footer, step_lines
from uncork.report.write.terminal_text import (
    write_answer,
    write_block,
    write_paragraph,
    write_report,
    write_title,
)

_TOGETHER: Final = "Chosen, measured again"
_MEASURED: Final = {
    "request": ("request", "connections an hour", "a request, with its connection"),
    "transaction": ("transaction", "transactions an hour", "a transaction, from BEGIN to COMMIT"),
}
"""How the table of effects names requests and transactions, their rate, and what their time covers."""
_STATEMENT_WIDTH: Final = 60


def build_cure_document(result: CureResult) -> Document:
    """Return the report of a cure."""
    missing = tuple(map(_missing_sentence, result.missing))
    shown = {change.state for _, _, change in named_changes(result)}
    return Document(
        title="cure",
        question=f"Which changes make this database faster? {result.server}",
        answer=result.answer,
        reasons=(*result.reasons, *(missing if not result.tried else ())),
        steps=tuple(cure_steps(result)),
        facts=tuple(_facts(result)),
        variants=tuple(state for state in VERDICTS if state in shown or state == "cured"),
        sections=tuple(_sections(result)),
        version=result.uncork_version,
    )


def _facts(result: CureResult) -> Iterator[tuple[str, str]]:
    yield "server", result.server
    if result.id:
        yield "run", result.id
    if result.watched:
        yield "evidence", result.watched
    yield "status", result.status
    yield "took", format_duration(result.seconds * 1e9)


def _sections(result: CureResult) -> Iterator[Section]:
    yield from filled_section("proven", "What was proven", *_proven_blocks(result))
    if any(True for _ in named_changes(result)):
        yield Section("changes", "All changes that were tried", tuple(_changes(result)))
    if result.usual and proven_change(result) is not None:
        yield Section("usual", "What people often try first", tuple(_usual(result)))
    for place, tried in enumerate(result.tried, 1):
        yield Section(f"finding-{place}", _finding_title(place, tried), tuple(_finding(result, tried)))
    if result.copy is not None:
        yield Section("copy", "The copy", tuple(_copy(result)))
    yield Section("workload", "The captured workload", tuple(_workload(result)))
    yield from filled_section("files", "Files", *_files(result))
    yield Section("reproduce", "How to repeat this", tuple(_reproduce(result)))


def _proven_blocks(result: CureResult) -> Iterator[Block]:
    chosen = proven_change(result)
    if chosen is None or chosen.net is None:
        return
    bills = [
        (name, seconds_text(bill.seconds_per_hour), bill_span(bill))
        for name, bill in (("as it is", result.bill_before), ("with the change", result.bill_after))
        if bill is not None
    ]
    net = chosen.net
    bills.append(
        ("saved", seconds_text(net.saved), f"{seconds_text(net.low)} s to {seconds_text(net.high)} s")
    )
    yield table_of(
        "The bill: time that sessions spend in the measured statements",
        bills,
        header("measured statements", lambda bill: bill[0]),
        number("sessions' time an hour", lambda bill: f"{bill[1]} s"),
        column("95 % interval", lambda bill: bill[2], whole=True),
    )
    yield from _change_blocks(chosen)


def _changes(result: CureResult) -> Iterator[Block]:
    yield changes_table(result)
    marks = tuple(_marks(result))
    if marks:
        states = tuple(dict.fromkeys(mark.variant for mark in marks))
        yield Legend(states, "Filled marks: cured or harmful. Hollow marks: no clear or no practical change.")
        yield ForestChart(
            title="Time of the measured statements with each change",
            description="The change of the workload's time with its 95 % interval, by its number.",
            marks=marks,
            variants=states,
            practical=PRACTICAL,
            floor=None,
            better="lower",
            axis="change of the workload's time",
        )


def changes_table(result: CureResult) -> Table:
    """Return the table of all changes: outcome, gain, the statement harmed most, and size."""
    return _changes_table(
        "Change of the workload's time with its 95 % interval; negative is better",
        result,
        [(f"{place} {change_words(change)}", change) for place, _, change in named_changes(result)],
    )


def _usual(result: CureResult) -> Iterator[Block]:
    yield Paragraph("uncork measured these too, with the same copy and statements, to show what they bring.")
    usual = [(change_words(change), change) for change in result.usual]
    yield _changes_table("", result, usual, tried=False)
    for words, change in usual:
        yield Fold(words, tuple(_change_blocks(change, with_reason=True)))


def _gain(change: Change) -> Value:
    return Value(gain_cell(change.net), sort=None if change.net is None else net_ratio(change.net)[0])


def _changes_table(
    caption: str, result: CureResult, named: list[tuple[str, Change]], *, tried: bool = True
) -> Table:
    """Return the chosen changes together, then each by its name; `tried` adds outcome and WAL."""
    if result.chosen is not None:
        named = [(f"{_TOGETHER}: {change_words(result.chosen)}", result.chosen), *named]
    return table_of(
        caption,
        [change for _, change in named],
        header("change", [name for name, _ in named]),
        column(
            "outcome",
            lambda change: Value(state_text(change.state), tone=TONES[VERDICTS[change.state]]),
            whole=True,
            when=tried,
        ),
        column("workload's time", _gain, whole=True),
        column("worst statement", lambda change: effect_cell(worst_effect(change)), whole=True),
        number("WAL", lambda change: _wal(change.effects), when=tried),
        number("size", lambda change: "" if change.size is None else bytes_cell(change.size)),
    )


def _wal(effects: Sequence[StatementEffect]) -> str:
    """Return how much more WAL the statements write, at worst; empty if it is unknown."""
    ratios = [effect.wal_ratio for effect in effects if effect.wal_ratio is not None]
    return effect_text(max(ratios)) if ratios else ""


def _marks(result: CureResult) -> Iterator[ForestMark]:
    named = [(number, change) for number, _, change in named_changes(result)]
    if result.chosen is not None:
        named.insert(0, (_TOGETHER, result.chosen))
    for name, change in named:
        label = f"{name}{', control' if change.kind == 'control' else ''}: {change.state}"
        if change.net is not None and change.net.before > 0:
            ratio, low, high = net_ratio(change.net)
            yield ForestMark(label, change.state, VERDICTS[change.state], ratio, low, high, None)


def _finding_title(number: int, tried: Tried) -> str:
    unproven = not tried.changes and tried.more_s is None and tried.state == "not tried"
    state = "not proven on a copy" if unproven else tried.state
    return f"{number}. {tried.finding.headline} ({SYMBOLS[VERDICTS[tried.state]]} {state})"


def _finding(result: CureResult, tried: Tried) -> Iterator[Block]:
    if not tried.changes:
        yield Paragraph(reason_sentence(tried.reason))
        yield from finding_blocks(tried.finding)
        return
    yield Paragraph(reason_sentence(tried.reason))
    yield from finding_blocks(replace(tried.finding, candidates=(), proof=""))
    numbers = {id(change): number for number, _, change in named_changes(result)}
    for change in tried.changes:
        title = f"{numbers[id(change)]} {change_words(change)}: {state_text(change.state)}"
        yield Fold(title, tuple(_change_blocks(change, with_reason=True)), open=change.name == tried.best)


def _change_blocks(change: Change, *, with_reason: bool = False) -> Iterator[Block]:
    if with_reason and change.reason:
        yield Paragraph(reason_sentence(change.reason))
    facts = tuple(_change_facts(change))
    if facts:
        yield Facts(facts)
    if change.effects:
        yield _effects_table(change)
    application = change.kind == "client"
    does = "The application does" if operation_word(change) else "The application sends"
    if change.sql:
        yield Code(change.sql, "sql", does if application else "To make the change")
    if change.undo:
        yield Code(change.undo, "sql", "Instead of" if application else "To revert it")
    if change.assumed:
        yield Bullets(tuple(f"Assumed: {text}" for text in change.assumed))
    if change.against:
        yield Bullets(tuple(f"Against it: {text}" for text in change.against))


def _change_facts(change: Change) -> Iterator[tuple[str, str]]:
    word = operation_word(change)
    if change.net is not None:
        yield f"time of a {word}" if word else "workload's time", gain_cell(change.net)
        verb, _, amount = saved_words(change.net).partition(" ")
        yield verb, amount
    for effect in change.effects if word else ():
        if effect.before_cpu_ns is not None and effect.after_cpu_ns is not None:
            times = map(format_duration, (effect.before_cpu_ns, effect.after_cpu_ns))
            yield f"server's processor time for a {word}", " → ".join(times)
    worst = worst_effect(change)
    if worst is not None:
        yield "worst statement", effect_sentence(worst)
    if price_words(change):
        yield "takes", price_words(change)
    if change.runs:
        yield "measured by", ", ".join(f"uncork report {shlex.quote(run)}" for run in change.runs)


def _effects_table(change: Change) -> Table:
    word, effects = operation_word(change), change.effects
    each, rate, what = _MEASURED.get(word, ("statement", "calls an hour", "each statement"))
    texts = short_templates([effect.sql for effect in effects], _STATEMENT_WIDTH)
    return table_of(
        f"Mean time of {what}, with the 95 % interval of its change",
        effects,
        header(
            each,
            [
                Value(text, note=_effect_note(effect), code=True)
                for text, effect in zip(texts, effects, strict=True)
            ],
        ),
        number(rate, lambda effect: count_cell(round(effect.calls_per_hour))),
        number("before", lambda effect: duration_cell(effect.before_ns)),
        number("after", lambda effect: duration_cell(effect.after_ns)),
        column(
            "change",
            lambda effect: Value(effect_cell(effect) or "not measured", sort=effect.ratio),
            whole=True,
        ),
    )


def _effect_note(effect: StatementEffect) -> str:
    parts = [
        "writes" if effect.changes else "",
        origin_text(effect),
        f"WAL {effect_text(effect.wal_ratio)}" if effect.wal_ratio is not None else "",
        f"{effect.clients} sessions at once" if effect.clients > 1 else "",
    ]
    return ", ".join(filter(None, parts))


def _copy(result: CureResult) -> Iterator[Block]:
    copy = result.copy
    if copy is None:
        return
    whole = sum(table.whole for table in copy.tables)
    yield Facts(
        (
            ("copied", copy.how),
            ("tables", f"{format_count(len(copy.tables))}, {format_count(whole)} of them whole"),
            ("size", format_bytes(copy.bytes)),
            ("took", format_duration(copy.seconds * 1e9)),
            (
                "planner's statistics",
                "the server's own" if copy.source_statistics else "gathered on the copy",
            ),
        )
    )
    partial = [table for table in copy.tables if not table.whole]
    if partial:
        yield Paragraph(
            "A sample has smaller tables and indexes. Gains on a large table are usually larger on the whole "
            "table, and building an index takes longer."
        )
        yield table_of(
            "Tables with a part of their rows",
            sorted(partial, key=lambda table: -table.source_rows),
            header("sampled table", lambda table: table.name),
            number("rows copied", lambda table: count_cell(table.rows)),
            number("rows of the source", lambda table: count_cell(round(table.source_rows), "estimate")),
            number("part", lambda table: _part(table.rows / table.source_rows)),
        )
    if copy.missing:
        yield table_of(
            "What the copy lacks",
            copy.missing,
            header("not copied", lambda copied: copied.what),
            column("why", lambda copied: copied.why),
            column("what that means", lambda copied: capitalised(copied.lost)),
        )
    else:
        yield Paragraph("No object was left out.")


def _part(share: float) -> Value:
    return Value(share_text(share), sort=share)


def _workload(result: CureResult) -> Iterator[Block]:
    rest = 1 - result.covered
    text = f"The captured statements take {share_text(result.covered)} of the time of all statements."
    if rest >= 0.001:
        text += f" What a change does to the other {share_text(rest)} is unknown."
    yield Paragraph(text)
    if result.missing:
        yield Bullets(tuple(map(_missing_sentence, result.missing)))


def _missing_sentence(missing: Missing) -> str:
    if not missing.remedy:
        return (
            f"Not captured: {missing.what}{'' if missing.what.endswith('…') else '.'} "
            f"{reason_sentence(missing.lost)}"
        )
    return missing_sentence(missing)


def _files(result: CureResult) -> Iterator[Block]:
    if not result.handed:
        return
    if result.folder:
        yield Paragraph(f"In {result.folder}:")
    yield table_of(
        "",
        result.handed,
        header("file", lambda handed: Value(handed.path, code=True)),
        column("what it is for", lambda handed: handed.text),
    )


def _reproduce(result: CureResult) -> Iterator[Block]:
    yield Code(result.reproduce, "sh")
    runs = [*([result.watched] if result.watched else [])]
    for change in (*(change for _, _, change in named_changes(result)), *filter(None, [result.chosen])):
        runs += [run for run in change.runs if run not in runs]
    if runs:
        many = count_words(len(runs), "run")
        text = "\n".join(f"uncork report {shlex.quote(run)}" for run in runs)
        yield Code(text, "sh", f"The evidence and the trials are {many}")


_INDENT: Final = 2


def render_cure_terminal(result: CureResult, console: Console) -> None:
    """Print the report; of each change that was tried only the outcome and its reason."""
    document = build_cure_document(result)

    def sections(console: Console) -> None:
        for section in document.sections:
            _write_section(console, section)
        if result.id and any(tried.changes for tried in result.tried):
            command = f"uncork report {shlex.quote(result.id)} --html cure.html"
            write_paragraph(console, f"The SQL and the effects of each change: {command}")

    write_report(console, document, [sections])


def _write_section(console: Console, section: Section) -> None:
    write_title(console, section.title)
    for place, block in enumerate(section.blocks):
        if isinstance(block, Table):
            if place:
                console.print()
            write_block(console, block, 0)
        elif isinstance(block, Fold):
            brief = tuple(inner for inner in block.blocks if isinstance(inner, Paragraph))
            write_block(console, Fold(block.summary, brief), _INDENT)
        else:
            write_block(console, block, _INDENT)
    console.print()


def render_cure_short(result: CureResult, console: Console) -> None:
    """Print the answer, and of a proven change what it saves, its SQL, and the file to run."""
    write_answer(console, result.answer)
    chosen = proven_change(result)
    if chosen is not None:
        write_paragraph(console, result.reasons[0])
        write_block(console, Code(chosen.sql), _INDENT)
        if up := handed_path(result, "up.sql"):
            console.print()
            console.print(f"As a file, with checks: {up}", markup=False, soft_wrap=True)


MOST: Final = 60_000
"""Maximum length in characters."""
_SHOWN: Final = frozenset({"changes"})
"""Sections that are shown directly; the others are folded."""


def pull_request_markdown(result: CureResult) -> str:
    """Return the cure as GitHub-flavoured Markdown of at most `MOST` characters."""
    document = build_cure_document(result)
    head = "\n".join(_head(result, document))
    foot = f"{footer(document.facts, document.version)}\n"
    parts = ["\n".join(_folded(section)) for section in document.sections if section.id not in _SHOWN]
    total = len(parts)
    while parts and len(head) + len(foot) + sum(map(len, parts)) > MOST:
        parts.remove(max(parts, key=len))
    if len(parts) < total:
        left = total - len(parts)
        many = f"{count_words(left, 'part')} {'is' if left == 1 else 'are'} left out"
        parts.append(f"_{many}, too long for a comment; see the HTML report._\n")

    return "\n".join([head, *parts, foot]).replace("\n\n\n", "\n\n")


def _head(result: CureResult, document: Document) -> Iterator[str]:
    headline, lead = map(escape, split_answer(document.answer))
    yield f"**{headline}**{f' {lead}' if lead else ''}"
    yield ""
    yield from block_lines(Bullets(document.reasons))
    chosen = proven_change(result)
    if chosen is not None and chosen.sql:
        yield from block_lines(Code(chosen.sql, "sql"))
    if any(True for _ in named_changes(result)):
        yield from block_lines(changes_table(result))
    yield from step_lines(document.steps, "**What to do next**")


def _folded(section: Section) -> Iterator[str]:
    blocks = tuple(
        inner
        for block in section.blocks
        for inner in ((Bullets((block.summary,)), *block.blocks) if isinstance(block, Fold) else (block,))
    )
    yield from block_lines(Fold(section.title, blocks))
