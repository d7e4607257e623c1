"""The table of results, and its place in `docs/reliability.md`."""
import json

from world import REPOSITORY

PAGE = REPOSITORY / "docs/reliability.md"
DATA = REPOSITORY / "docs/reliability.json"
BEGIN, END = "<!-- results: written by ./faults --write -->", "<!-- end of results -->"


def number(value):
    return f"{value:,}" if value else "–"


def total(rows, name):
    return sum(row[name] for row in rows if row)


def table(value):
    """One line for each operation, a column for each method, and the sums."""
    methods = ("errors", "kills", "power")
    swept = [row for row in value["rows"] if row["method"] in methods]
    names = list(dict.fromkeys(row["operation"] for row in swept))
    by = {(row["operation"], row["method"]): row for row in swept}
    lines = [f"Commit `{value['commit']}`, {value['version']}, {value['date']}, {value['machine']}, mode "
             f"`{value['mode']}`, seed `{value['seed']}`. {value.get('what', '')}".rstrip(), ""]
    if names:
        lines += ["| operation | errors | kills | power cuts | losses | other problems |",
                  "| --- | ---: | ---: | ---: | ---: | ---: |"]
        for name in sorted(names):
            rows = [by.get((name, method)) for method in methods]
            hits = [number(row["hits"]) if row else "–" for row in rows]
            lines.append(f"| {name} | {' | '.join(hits)} | {total(rows, 'losses')} | "
                         f"{total(rows, 'other_problems')} |")
        sums = [sum(row["hits"] for row in swept if row["method"] == method) for method in methods]
        lines.append(f"| **sum** | {' | '.join(f'**{number(one)}**' for one in sums)} | "
                     f"**{total(swept, 'losses')}** | **{total(swept, 'other_problems')}** |")
        trials = sum(row["trials"] for row in swept)
        lines += ["", f"{trials:,} trials in all; the columns count those whose fault was met. A loss is a trial after "
                  "which something was lost, counted twice, half written or not recovered; other problems are files left "
                  "behind, words, and exit codes."]
    rest = [row for row in value["rows"] if row["method"] not in methods]
    if rest:
        lines += ["", "| method | trials | faults | losses | measured |", "| --- | ---: | ---: | ---: | --- |"]
        for row in rest:
            faults = f"{number(row['hits'])} {FAULTS.get(row['method'], '')}".rstrip()
            lines.append(f"| {row['method']} | {number(row['trials'])} | {faults} | {row['losses']} | "
                         f"{measured(row.get('measured', {}))}{origin(row, value)} |")
    lines += [f"\n{note}." for note in dict.fromkeys(value["notes"])]
    return "\n".join(lines)


# What the column "faults" counts.
FAULTS = {"contention": "kills", "corruption": "damaged files"}
# What the columns before it have, or the head of the page.
ELSEWHERE = ("trials", "calls", "kills", "damaged", "seed")
# What a word of a program's result means on the page.
MEANT = {"faults": "faults in the store", "errors": "errors that a user saw", "logged": "lines of trouble in the log"}


def measured(facts):
    """The plain numbers and words of a program's own result."""
    is_plain = lambda fact: isinstance(fact, (int, float, str)) and not isinstance(fact, bool)
    hooks = facts.get("ms", {}).get("hooks", {})
    parts = [f"{MEANT.get(name, name.replace('_', ' '))} {round(fact, 1) if isinstance(fact, float) else fact}"
             for name, fact in facts.items() if is_plain(fact) and name not in ELSEWHERE]
    parts += [f"hook calls {name} {hooks[name]} ms" for name in ("p50", "p99", "max") if name in hooks]
    parts += [f"{row['operation']} {row['longest_ms']} ms" for row in facts.get("operations", ())]
    return ", ".join(parts)[:1500]


ORIGIN = ("commit", "date", "mode", "seed")


def origin(row, value):
    """Which run a row is of, if it is another one than that of the page."""
    differs = [f"{name} `{row[name]}`" for name in ORIGIN if row.get(name, value[name]) != value[name]]
    return f" ({', '.join(differs)})" if differs else ""


def merged(value):
    """The results of the page, with rows of this run in the place of theirs."""
    if not DATA.exists():
        return value
    page = json.loads(DATA.read_text())
    key = lambda row: (row["method"], row.get("operation", row["method"]))
    new = {key(row): {**row, **{name: value[name] for name in ORIGIN}} for row in value["rows"]}
    rows = [new.pop(key(row), row) for row in page["rows"]] + list(new.values())
    ran = {key(row) for row in value["rows"]}
    problems = [found for found in page["problems"] if key(found) not in ran] + value["problems"]
    return {**page, "rows": rows, "problems": problems, "notes": page["notes"] + value["notes"]}


def write(value, is_part):
    """Writes the page; a run of one method replaces only its rows."""
    value = merged(value) if is_part else value
    kept = {**value, "problems": [{name: found[name] for name in found if name != "output"} for found in value["problems"]]}
    DATA.write_text(json.dumps(kept, indent=1) + "\n")
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(value)}\n{END}{after}")
