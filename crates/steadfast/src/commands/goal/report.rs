//! `goal report`: the evidence for a whole goal, as text, Markdown, JSON or one HTML file.

use std::path::Path;
use std::time::Duration;

use steadfast_app::action::{self, ActionError};
use steadfast_app::overview::goal_page::goal_page;
use steadfast_app::overview::report::{GoalReport, ReportedCheck, StatusChange, VerdictView, goal_report};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Goal;
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::{price, text};
use steadfast_store::{Db, Store, StoreError};
use steadfast_views::report::goal_html;

use super::{CommandContext, GoalOutput, GoalResult, Named, find_place, open_existing};
use crate::commands::{html, person};
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

/// Rows of a section in text and Markdown; JSON has all of them.
const ROWS_SHOWN: usize = 50;

pub(super) fn report(
    context: &CommandContext<'_>,
    flag: Option<&str>,
    id: Option<&str>,
    md: bool,
    html: Option<&Path>,
) -> GoalResult {
    if html.is_some() && context.place.is_some() {
        let hint = "type `steadfast goal report --html FILE` in a terminal; here, --md prints Markdown";
        return Err(CliError::new(code::USAGE, "a report as HTML is for a terminal", hint));
    }
    let store = open_existing(context)?;
    let goal = find(context, &store, flag, id)?;
    if let Some(target) = html {
        let output = as_html(context, &store, &goal, target)?;
        return Ok(GoalOutput { output, goal: None });
    }
    let report = spelled(context, goal_report(store.read(), &goal, context.paths, context.now)?);
    let sections = sections(&report);
    let text = if md { markdown(&report, &sections) } else { plain(&report, &sections) };
    let json = serde_json::to_value(&report).map_err(|error| StoreError::Value(error.to_string()))?;
    Ok(GoalOutput { output: CommandOutput { text, json, code: 0 }, goal: None })
}

/// What the user can type here.
fn spelled(context: &CommandContext<'_>, mut report: GoalReport) -> GoalReport {
    report.goal.next = context.screen().spell(&report.goal.next);
    report
}

fn as_html(context: &CommandContext<'_>, store: &Store, goal: &Goal, target: &Path) -> CommandResult {
    let mut page = goal_page(store.read(), goal, context.paths, context.now)?;
    page.report = spelled(context, page.report);
    let html = goal_html(&page, context.now)?;
    let json = serde_json::to_value(&page.report).map_err(|error| StoreError::Value(error.to_string()))?;
    html::hand_out(target, html, json, context.is_json)
}

/// The goal with this id, or the newest one of the session.
fn find(context: &CommandContext<'_>, store: &Store, flag: Option<&str>, id: Option<&str>) -> Result<Goal, CliError> {
    let db = store.read();
    let Some(id) = id else {
        let place = find_place(context, store, flag, Named::Known)?;
        person::refuse_foreign_session(context.origin.actor, db, &place.session_id)?;
        let newest = newest_of(db, &place.session_id)?;
        return newest.ok_or_else(|| ActionError::NoGoal(place.session_id).into());
    };
    let goal = action::find_goal_ever(db, id)?;
    person::refuse_foreign_session(context.origin.actor, db, &goal.session_id)?;
    Ok(goal)
}

fn newest_of(db: Db<'_>, session_id: &str) -> Result<Option<Goal>, StoreError> {
    match db.goal(session_id)? {
        Some(goal) => Ok(Some(goal)),
        None => Ok(db.replaced_goals(Some(session_id))?.into_iter().next()),
    }
}

struct Section {
    title: &'static str,
    rows: Vec<ReportRow>,
}

/// One line; `mark` says whether what it names is met.
struct ReportRow {
    mark: Option<bool>,
    text: String,
}

impl ReportRow {
    fn new(text: impl Into<String>) -> Self {
        Self { mark: None, text: text.into() }
    }

    fn marked(is_met: bool, text: String) -> Self {
        Self { mark: Some(is_met), text }
    }
}

fn sections(report: &GoalReport) -> Vec<Section> {
    let goal = &report.goal;
    let items = goal.done.items.iter().map(|item| match &item.proof {
        Some(proof) => ReportRow::marked(true, format!("{}: {proof}", item.text)),
        None => ReportRow::marked(false, item.text.clone()),
    });
    let limits = report.limits.iter().map(|limit| {
        let unit = format!(" {}", limit.limit);
        let bare = |amount: &str| amount.strip_suffix(&unit).unwrap_or(amount).to_owned();
        ReportRow::new(format!("{}: {} of {}", limit.limit, bare(&limit.used), bare(&limit.most)))
    });
    let objectives = report.objectives.iter().map(|change| {
        let by = change.by.as_deref().unwrap_or("unknown");
        ReportRow::new(format!("{} by {by}, before: {}", at(change.created_at_ms), change.previous))
    });
    let refused = report.refused.iter().map(|refused| {
        let by = refused.by.as_deref().unwrap_or("unknown");
        ReportRow::new(format!("{} {} by {by}", at(refused.created_at_ms), refused.verb))
    });
    let all = [
        ("Status", summary(report)),
        ("Used", used(report)),
        ("Limits", limits.collect()),
        ("Items", items.collect()),
        ("Checks", report.checks.iter().map(check).collect()),
        ("Verdicts", report.verdicts.iter().map(verdict).collect()),
        ("Earlier objectives", objectives.collect()),
        ("Timeline", report.timeline.iter().map(status_change).collect()),
        ("Refused to the agent", refused.collect()),
    ];
    all.into_iter().filter(|(_, rows)| !rows.is_empty()).map(|(title, rows)| Section { title, rows }).collect()
}

fn summary(report: &GoalReport) -> Vec<ReportRow> {
    let goal = &report.goal;
    let reason = goal.paused_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let by = match goal.done.completed_by {
        Some(CompletedBy::SelfUpdate) => ": the agent's own word",
        Some(CompletedBy::Evaluator) => ": the evaluator agreed",
        Some(CompletedBy::Verification) => ": every check passed",
        Some(CompletedBy::User) => ": you said so",
        None => "",
    };
    let mut rows = vec![ReportRow::new(format!("{}{reason}{by}", goal.state()))];
    rows.extend(goal.done.when.as_ref().map(|parts| ReportRow::new(format!("done when: {parts}"))));
    rows.push(ReportRow::new(format!("goal {} of session {}", goal.goal_id, goal.session_id)));
    let ended = if goal.status.is_live() { "" } else { ", ended " };
    let at = if goal.status.is_live() { String::new() } else { clock::to_local(goal.updated_at_ms) };
    rows.push(ReportRow::new(format!("started {}{ended}{at}", clock::to_local(goal.created_at_ms))));
    rows
}

fn used(report: &GoalReport) -> Vec<ReportRow> {
    let goal = &report.goal;
    let number = text::thousands;
    let cost = goal.cost_usd.map_or_else(|| "unknown".to_owned(), |usd| text::usd(price::micros(usd)));
    let doubt = if goal.accounting_uncertain { " (may undercount)" } else { "" };
    vec![
        ReportRow::new(format!(
            "tokens: {} worker, {} subagent (of these {} evaluator), {} cache reads{doubt}",
            number(goal.tokens_used),
            number(goal.subagent_tokens),
            number(goal.evaluator_tokens),
            number(goal.cache_read_tokens)
        )),
        ReportRow::new(format!("cost: {cost}")),
        ReportRow::new(format!("turns: {}", goal.continuations_used)),
        ReportRow::new(format!(
            "time: {} active, {} since start",
            text::duration(goal.active_seconds),
            text::duration(goal.wall_seconds)
        )),
    ]
}

fn check(check: &ReportedCheck) -> ReportRow {
    let Some(run) = &check.result else { return ReportRow::marked(false, format!("{}: never ran", check.command)) };
    let how = match (run.timed_out, run.exit_code) {
        (true, _) => "timed out".to_owned(),
        (false, Some(code)) => format!("exit {code}"),
        (false, None) => "ended by a signal".to_owned(),
    };
    let seconds = Duration::from_millis(run.duration_ms.unsigned_abs()).as_secs_f64();
    let hash = text::head(&run.output_sha256, 12);
    let dirty = if run.git_dirty == Some(true) { " with uncommitted changes" } else { "" };
    let commit = run.git_commit.as_deref().map(|commit| format!(", commit {}{dirty}", text::head(commit, 12)));
    let (at, commit) = (clock::to_local(run.created_at_ms), commit.unwrap_or_default());
    ReportRow::marked(
        run.passed,
        format!("{}: {how} in {seconds:.1}s, output sha256 {hash}{commit}, {at}", check.command),
    )
}

fn verdict(verdict: &VerdictView) -> ReportRow {
    let reason = verdict.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let evidence = verdict.evidence.join("; ");
    let evidence = if evidence.is_empty() { evidence } else { format!("; {evidence}") };
    let stale = if verdict.for_current_objective { "" } else { " (for an earlier objective)" };
    ReportRow::new(format!("{} {}{stale}{reason}{evidence}", at(verdict.created_at_ms), verdict.verdict))
}

fn status_change(change: &StatusChange) -> ReportRow {
    let reason = change.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let what = change.kind.replace('_', " ");
    let by = change.by.as_ref().map(|by| format!(" by {by}")).filter(|by| !what.ends_with(by)).unwrap_or_default();
    let to = change.to.as_deref().unwrap_or("?");
    let moved = change.from.as_ref().map_or_else(|| to.to_owned(), |from| format!("{from} → {to}"));
    ReportRow::new(format!("{} {what}{by}: {moved}{reason}", at(change.created_at_ms)))
}

fn at(ms: Millis) -> String {
    clock::to_local(ms)
}

/// The newest rows of a section, and how many are left out before them.
fn shown(section: &Section) -> (usize, impl Iterator<Item = &ReportRow>) {
    let earlier = section.rows.len().saturating_sub(ROWS_SHOWN);
    // Items are numbered by their place, so the first ones stay.
    let skipped = if section.title == "Items" { 0 } else { earlier };
    (skipped, section.rows.iter().skip(skipped))
}

fn plain(report: &GoalReport, sections: &[Section]) -> String {
    let mut lines = vec![format!("◎ Goal: {}", text::one_line(&report.goal.objective))];
    for section in sections {
        lines.push(format!("\n{}", section.title));
        let (earlier, rows) = shown(section);
        lines.extend((earlier > 0).then(|| format!("  {earlier} earlier ones are in --json")));
        lines.extend(rows.map(|row| {
            let mark = row.mark.map(|is_met| if is_met { "✓ " } else { "☐ " }).unwrap_or_default();
            format!("  {mark}{}", text::one_line(&row.text))
        }));
    }
    lines.push(format!("\nnext: {}", report.goal.next));
    lines.join("\n")
}

fn markdown(report: &GoalReport, sections: &[Section]) -> String {
    let mut lines = vec![format!("## Goal: {}", escape_markdown(&report.goal.objective))];
    for section in sections {
        lines.push(format!("\n### {}\n", section.title));
        let (earlier, rows) = shown(section);
        lines.extend((earlier > 0).then(|| format!("- {earlier} earlier ones are left out")));
        lines.extend(rows.map(|row| {
            let mark = row.mark.map(|is_met| if is_met { "[x] " } else { "[ ] " }).unwrap_or_default();
            format!("- {mark}{}", escape_markdown(&row.text))
        }));
    }
    lines.join("\n")
}

/// One line of Markdown that shows the text as it is: nothing in it is a tag, a link, a table, code or emphasis.
fn escape_markdown(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for character in text::one_line(raw).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => escaped.extend(['\\', character]),
            // Without this, a pull request would notify whoever is named.
            '@' => escaped.push_str("@\u{200b}"),
            '\t' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markdown() {
        let hostile = "</details><script>x</script>\n# done | `rm` [a](b) *x* _y_ @ann \u{1b}[31m&amp; ![i](u)";
        assert_eq!(
            escape_markdown(hostile),
            "&lt;/details&gt;&lt;script&gt;x&lt;/script&gt; \\# done \\| \\`rm\\` \\[a\\](b) \\*x\\* \\_y\\_ @\u{200b}ann \
             &amp;amp; \\!\\[i\\](u)"
        );
    }
}
