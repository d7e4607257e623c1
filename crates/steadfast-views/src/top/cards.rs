//! One row of the list as lines: what it is, how far it is, what it does and what comes next.

use ratatui::text::{Line, Span};
use steadfast_app::overview::find::{Found, FoundKind};
use steadfast_app::overview::now::fleet::FleetRun;
use steadfast_app::overview::now::{
    EndedCard, GoalCard, LimitBar, NeedKind, RecentEnding, RunCard, SpendPace, StageDot, Subject, UserNeed, WaitCard,
};
use steadfast_model::clock::{self, Millis, SECOND};
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::run::StageStatus;
use steadfast_model::text;

use super::style::{self, Palette, Tone, sides};
use super::words::{self, plain};

/// The width of the word that says what a row is.
const WORD: usize = 11;
/// Lines after the first begin here.
const INDENT: usize = 4;

/// How a row is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardLook {
    pub(super) columns: usize,
    pub(super) at_ms: Millis,
    pub(super) palette: Palette,
    pub(super) is_selected: bool,
}

impl CardLook {
    fn first(self, shape: (Tone, &str), word: &str, title: &str, right: &str) -> Line<'static> {
        let (tone, shape) = shape;
        let (marker, weight) = if self.is_selected { ("▸ ", Tone::Accent) } else { ("  ", Tone::Plain) };
        let word = if word.is_empty() { String::new() } else { format!("{word:<WORD$} ") };
        let left = vec![
            self.palette.span(Tone::Accent, marker),
            self.palette.span(tone, format!("{shape} {word}")),
            self.palette.span(weight, plain(title)),
        ];
        let right = words::cut(right, self.columns / 2);
        sides(left, vec![self.palette.span(Tone::Quiet, right)], self.columns)
    }

    /// Further lines with less weight.
    fn more(self, text: &str, most: usize) -> Vec<Line<'static>> {
        let lines = words::wrap(&plain(text), self.columns.saturating_sub(INDENT), most);
        lines.into_iter().map(|line| self.palette.line(Tone::Quiet, format!("{:INDENT$}{line}", ""))).collect()
    }
}

/// Words with a middle dot between those that are not empty.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn need_word(kind: NeedKind) -> &'static str {
    match kind {
        NeedKind::Blocked => "blocked",
        NeedKind::SignOff => "sign-off",
        NeedKind::Approval => "approval",
        NeedKind::Stalled => "stalled",
        NeedKind::Limit => "limit",
        NeedKind::Refused => "refused",
        NeedKind::Paused => "paused",
        NeedKind::EngineGone => "engine gone",
    }
}

pub(super) fn need(need: &UserNeed, look: CardLook) -> Vec<Line<'static>> {
    let right = joined([words::project(need.project.as_deref()), words::span(look.at_ms - need.since_ms)]);
    let mut lines = vec![look.first((Tone::Warn, "!"), need_word(need.kind), &need.title, &right)];
    lines.extend(look.more(&joined([need.why.clone(), need.hint.clone()]), 2));
    lines
}

/// The limit in a word, where its amounts do not say what they are.
fn axis_word(axis: Axis) -> &'static str {
    match axis {
        Axis::Tokens => "tokens",
        Axis::Usd => "money",
        Axis::Turns => "turns",
        Axis::Hours => "time",
        Axis::Deadline => "deadline",
        Axis::Shared => "caps",
        Axis::Plan => "plan",
    }
}

/// An amount in few characters: `6,200,000 tokens` is `6.2M`.
fn short(amount: &str) -> String {
    let first = amount.strip_suffix(" tokens").map(|number| number.replace(',', ""));
    let number = first.and_then(|number| number.parse().ok()).map(text::short_number);
    let amount = number.unwrap_or_else(|| amount.to_owned());
    amount.trim_end_matches(" turns").trim_end_matches(" turn").trim_end_matches(" of the plan").to_owned()
}

/// `tokens ██████░░░░ 62 %`
pub(super) fn limit_bar(bar: &LimitBar, columns: usize, palette: Palette) -> Vec<Span<'static>> {
    vec![
        palette.span(Tone::Plain, format!("{} ", axis_word(bar.axis))),
        palette.span(style::of_percent(bar.percent), words::bar(bar.percent, columns)),
        palette.span(Tone::Strong, format!(" {} %", bar.percent)),
    ]
}

/// `$1.20/$5.00`, `14/40 turns`
fn short_limit(bar: &LimitBar) -> String {
    match bar.axis {
        Axis::Usd | Axis::Hours => format!("{}/{}", short(&bar.used), short(&bar.most)),
        Axis::Deadline | Axis::Plan | Axis::Shared => format!("{} {} %", axis_word(bar.axis), bar.percent),
        Axis::Tokens | Axis::Turns => format!("{}/{} {}", short(&bar.used), short(&bar.most), axis_word(bar.axis)),
    }
}

/// `at this pace: 2 h 10 m, $14`
pub(super) fn pace_words(pace: &SpendPace) -> String {
    let left = pace.seconds_left.map(|seconds| words::span(seconds.saturating_mul(SECOND)));
    let then = pace.usd_then.map(words::money);
    match (left, then) {
        (Some(left), Some(then)) => format!("at this pace: {left}, {then}"),
        (Some(left), None) => format!("at this pace: {left}"),
        _ => format!("{} tokens an hour", text::short_number(pace.tokens_per_hour)),
    }
}

/// Two texts side by side; what one does not need is for the other.
fn share(first: &str, second: &str, columns: usize) -> String {
    let between = 3;
    if first.is_empty() || second.is_empty() {
        return words::cut(&format!("{first}{second}"), columns);
    }
    let room = columns.saturating_sub(between);
    let (one, two) = (words::width(first), words::width(second));
    let of_first = one.min(room.saturating_sub(two.min(room / 2)));
    let first = words::cut(first, of_first);
    let rest = room.saturating_sub(words::width(&first));
    format!("{first} · {}", words::cut(second, rest))
}

pub(super) fn goal(card: &GoalCard, look: CardLook) -> Vec<Line<'static>> {
    let (goal, palette) = (&card.goal, look.palette);
    let host = goal.host.parse::<Host>().unwrap_or_default().capabilities().product;
    let right = joined([host.to_owned(), words::project(goal.project_dir.as_deref())]);
    let mut lines = vec![look.first((Tone::Good, "●"), "", &goal.objective, &right)];

    let mut spans = vec![Span::raw(" ".repeat(INDENT))];
    let pace = card.pace.as_ref().map(pace_words).unwrap_or_default();
    if let Some((first, others)) = card.limits.split_first() {
        spans.extend(limit_bar(first, if look.columns >= 100 { 20 } else { 10 }, palette));
        let mut room =
            look.columns.saturating_sub(spans.iter().map(Span::width).sum::<usize>() + words::width(&pace) + 2);
        // A limit that does not fit is left out as a whole; the details have all of them.
        for other in others.iter().map(|other| format!(" · {}", short_limit(other))) {
            let needs = words::width(&other);
            if needs <= room {
                room -= needs;
                spans.push(palette.span(Tone::Quiet, other));
            }
        }
    } else {
        let cost = goal.cost_usd.map_or_else(|| "cost unknown".to_owned(), words::money);
        let spent = format!("no limit · {} tokens · {cost}", text::short_number(goal.total_tokens));
        spans.push(palette.span(Tone::Quiet, spent));
    }
    lines.push(sides(spans, vec![palette.span(Tone::Quiet, pace)], look.columns));

    let doing = card.doing.as_ref();
    let doing = doing.map(|doing| format!("now: {}, {}", plain(&doing.what), words::ago(doing.at_ms, look.at_ms)));
    let next = format!("next: {}", plain(&goal.next));
    let room = look.columns.saturating_sub(INDENT);
    let text = share(&doing.unwrap_or_default(), &next, room);
    lines.push(palette.line(Tone::Quiet, format!("{:INDENT$}{text}", "")));
    lines
}

/// The shape and tone of a stage; the shape alone says how it stands.
pub(super) fn stage_shape(status: StageStatus) -> (Tone, &'static str) {
    match status {
        StageStatus::Pending => (Tone::Quiet, "○"),
        StageStatus::Deciding => (Tone::Plain, "◌"),
        StageStatus::AwaitingApproval => (Tone::Warn, "?"),
        StageStatus::Running => (Tone::Accent, "●"),
        StageStatus::Completed => (Tone::Good, "✓"),
        StageStatus::Failed => (Tone::Bad, "✗"),
        StageStatus::Skipped => (Tone::Quiet, "–"),
    }
}

/// Stages with their names where all of them fit, else with the first letters, else as shapes only.
pub(super) fn stage_dots(stages: &[StageDot], columns: usize, palette: Palette) -> Vec<Span<'static>> {
    let named = |most: usize| -> Vec<(Tone, String)> {
        let dot = |stage: &StageDot| {
            let (tone, shape) = stage_shape(stage.status);
            (tone, format!("{shape}{}", plain(&stage.name).chars().take(most).collect::<String>()))
        };
        stages.iter().map(dot).collect()
    };
    let needs = |dots: &[(Tone, String)]| dots.iter().map(|(_, dot)| words::width(dot) + 1).sum::<usize>();
    let forms = [named(16), named(3), named(0)];
    let fitting = forms.iter().find(|dots| needs(dots) <= columns).or(forms.last());
    let spans = fitting.into_iter().flatten().map(|(tone, dot)| palette.span(*tone, format!("{dot} ")));
    style::fit(spans.collect(), columns)
}

pub(super) fn run(card: &RunCard, look: CardLook) -> Vec<Line<'static>> {
    let (run, palette) = (&card.run, look.palette);
    let (shape, word) = match () {
        () if run.is_orphaned => ((Tone::Bad, "!"), "engine gone"),
        () if run.is_stop_requested => ((Tone::Warn, "◍"), "stopping"),
        () if run.is_asking => ((Tone::Warn, "?"), "asks you"),
        () => ((Tone::Good, "●"), "running"),
    };
    let until = run.completed_at.map_or(look.at_ms, |at| at.0);
    let right = joined([
        format!("{}/{}", run.iteration, run.max_iterations),
        run.cost.map_or_else(|| "cost unknown".to_owned(), |cost| text::usd(cost.0)),
        words::span(until - run.started_at.0),
        words::project(Some(&run.project)),
    ]);
    let kind = if run.title.is_empty() || run.title == run.name { run.kind.to_string() } else { run.title.clone() };
    let mut lines = vec![look.first(shape, word, &format!("{} ({kind})", run.name), &right)];

    let mut spans = vec![Span::raw(" ".repeat(INDENT))];
    let summary = card.last_summary.as_deref().map(|summary| format!("last: {}", plain(summary))).unwrap_or_default();
    if card.stages.len() > 1 {
        let room = look.columns.saturating_sub(INDENT);
        let room = if summary.is_empty() { room } else { room / 2 };
        spans.extend(stage_dots(&card.stages, room, palette));
    }
    if !summary.is_empty() {
        spans.push(palette.span(Tone::Quiet, summary));
    }
    if spans.len() > 1 {
        lines.push(Line::from(style::fit(spans, look.columns)));
    }
    lines
}

/// A run on the fleet.
pub(super) fn fleet(run: &FleetRun, look: CardLook) -> Vec<Line<'static>> {
    let shape = match (run.live, run.status.as_str()) {
        (true, _) => (Tone::Good, "●"),
        (false, "completed") => (Tone::Good, "✓"),
        (false, _) => (Tone::Bad, "✗"),
    };
    let right = joined([
        format!("{}/{}", run.iteration, run.max_iterations),
        run.cost_usd.map_or_else(|| "cost unknown".to_owned(), words::money),
        words::project(Some(&run.project)),
    ]);
    let kind = if run.title.is_empty() { &run.kind } else { &run.title };
    let mut lines = vec![look.first(shape, &plain(&run.status), &format!("{} ({kind})", run.name), &right)];
    if let Some(reason) = run.reason.as_deref().filter(|_| !run.live) {
        lines.extend(look.more(reason, 1));
    }
    lines
}

pub(super) fn waiting(card: &WaitCard, look: CardLook) -> Vec<Line<'static>> {
    let left = card.until_ms.map_or_else(|| "waits".to_owned(), |until| words::countdown(until, look.at_ms));
    let project = words::project(card.project.as_deref());
    let mut lines = vec![look.first((Tone::Plain, "◷"), &left, &card.title, &project)];
    let until = card.until_ms.map(|until| format!("until {}", clock::to_local_short(until, look.at_ms)));
    let woken = format!("woken by {}", card.woken_by);
    lines.extend(look.more(&joined([format!("for {}", card.what), until.unwrap_or_default(), woken]), 1));
    lines
}

fn ending(ending: RecentEnding) -> (Tone, &'static str, &'static str) {
    match ending {
        RecentEnding::Verified => (Tone::Good, "✓", "verified"),
        RecentEnding::Completed => (Tone::Good, "✓", "completed"),
        RecentEnding::Unverified => (Tone::Warn, "~", "unverified"),
        RecentEnding::Limited => (Tone::Warn, "=", "limited"),
        RecentEnding::Abandoned => (Tone::Quiet, "–", "abandoned"),
        RecentEnding::Failed => (Tone::Bad, "✗", "failed"),
        RecentEnding::Killed => (Tone::Bad, "■", "killed"),
    }
}

pub(super) fn ended(card: &EndedCard, look: CardLook) -> Vec<Line<'static>> {
    let (tone, shape, word) = ending(card.ending);
    // Other goals are completed by what verified them.
    let is_by_hand = card.ending == RecentEnding::Completed && matches!(card.subject, Subject::Goal { .. });
    let right = joined([
        if is_by_hand { "by you".to_owned() } else { String::new() },
        card.cost_usd.map(words::money).unwrap_or_default(),
        words::project(card.project.as_deref()),
        words::ago(card.at_ms, look.at_ms),
    ]);
    vec![look.first((tone, shape), word, &card.title, &right)]
}

/// The details of what ended and of what waits, which have no more than their row.
pub(super) fn ended_words(card: &EndedCard) -> String {
    let (_, _, word) = ending(card.ending);
    let reason = card.reason.as_deref().map(plain).unwrap_or_default();
    let tokens = card.tokens.map(|tokens| format!("{} tokens", text::short_number(tokens))).unwrap_or_default();
    let took = format!("took {}", words::span(card.seconds.saturating_mul(SECOND)));
    joined([word.to_owned(), reason, took, tokens, card.cost_usd.map(words::money).unwrap_or_default()])
}

pub(super) fn found(found: &Found, look: CardLook) -> Vec<Line<'static>> {
    let word = match found.kind {
        FoundKind::Goal => "goal",
        FoundKind::Run => "run",
        FoundKind::Event => "event",
        FoundKind::Memory => "memory",
    };
    let right = joined([words::project(found.project.as_deref()), words::ago(found.at_ms, look.at_ms)]);
    let mut lines = vec![look.first((Tone::Plain, "·"), word, &found.title, &right)];
    lines.extend(look.more(&found.line, 1));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_fit_into_a_narrow_row() {
        for (amount, shown) in [
            ("6,200,000 tokens", "6.2M"),
            ("1 turn", "1"),
            ("14 turns", "14"),
            ("$1.20", "$1.20"),
            ("2h 05m", "2h 05m"),
        ] {
            assert_eq!(short(amount), shown);
        }
    }

    #[test]
    fn two_texts_share_a_line() {
        assert_eq!(share("abc", "def", 20), "abc · def");
        assert_eq!(share("aaaaaaaaaa", "bb", 12), "aaaaaa… · bb");
        assert_eq!(share("aa", "bbbbbbbbbb", 12), "aa · bbbbbb…");
        assert_eq!(share("", "bbbb", 3), "bb…");
    }

    #[test]
    fn stages_keep_their_shapes_when_names_do_not_fit() {
        let palette = Palette { has_colour: false };
        let stage = |name: &str, status| StageDot { name: name.into(), status };
        let stages = [stage("plan", StageStatus::Completed), stage("build", StageStatus::Running)];
        let shown =
            |columns| stage_dots(&stages, columns, palette).iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(
            (shown(20).as_str(), shown(10).as_str(), shown(4).as_str()),
            ("✓plan ●build ", "✓pla ●bui ", "✓ ● ")
        );
    }
}
