//! Every chart is well-formed for any values, quotes nothing as markup, and says in words what it shows.

use steadfast_app::overview::goal_page::{MarkKind, PageMark, Pause};
use steadfast_app::overview::now::{Point, SpendPace};
use steadfast_app::overview::runs::StageView;
use steadfast_app::usage::charts::{ModelDay, UsageDayView};
use steadfast_model::run::StageStatus;

use super::*;

const HOSTILE: &str =
    "</text></title><script>alert(1)</script>\" onload=\"x\" ' & \u{1b}[31m\u{202e}\u{0}\u{ffff}<!-- ]]>";
const START: i64 = 1_790_000_000_000;
const MINUTE: i64 = 60_000;

/// Fails unless elements are balanced, attributes quoted and known, and text holds no markup.
fn check(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "a bracket in text: {text}");
        check_entities(text);
        let end = rest[start..].find('>').expect("a tag that ends") + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {svg}");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag.trim_end_matches('/'), ""));
        assert!(KNOWN.contains(&name), "element {name}");
        check_attributes(attributes.trim_end_matches('/'));
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "left: {open:?} {rest}");
    assert!(svg.starts_with("<svg class=\"chart "), "{svg}");
    assert!(svg.contains(" role=\"img\"><title>") && svg.contains("</title><desc>"), "{svg}");
    for absent in ["NaN", "inf", "style=", "<title></title>", "<desc></desc>", "\u{1b}", "\u{202e}", "\u{0}"] {
        assert!(!svg.contains(absent), "{absent:?} in {svg}");
    }
}

const KNOWN: [&str; 12] =
    ["svg", "title", "desc", "g", "rect", "line", "circle", "path", "text", "defs", "pattern", "use"];

fn check_attributes(mut rest: &str) {
    while !rest.trim().is_empty() {
        let (name, after) = rest.trim_start().split_once("=\"").expect("a value in quotes");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "attribute {name}");
        assert!(!name.starts_with("on") && name != "href" && name != "style", "attribute {name}");
        let (value, after) = after.split_once('"').expect("a closing quote");
        assert!(!value.contains(['<', '&', ':']), "value {value}");
        rest = after;
    }
}

fn check_entities(text: &str) {
    for part in text.split('&').skip(1) {
        let (name, _) = part.split_once(';').expect("an entity that ends");
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "entity {name}");
    }
}

fn point(minute: i64, tokens: i64, cost_micros: i64) -> Point {
    Point { at_ms: START + minute * MINUTE, tokens, cost_micros }
}

fn burn(points: &[Point]) -> BurnDown<'_> {
    BurnDown {
        points,
        budget: None,
        usd_budget_micros: None,
        pauses: &[],
        marks: &[],
        from_ms: START,
        to_ms: START + 90 * MINUTE,
        pace: None,
    }
}

fn stage(number: u32, name: &str, status: StageStatus, needs: Option<&[&str]>) -> StageView {
    StageView {
        stage: number,
        name: name.to_owned(),
        loop_type: None,
        max_iterations: 5,
        parallel: false,
        status,
        started_at: None,
        completed_at: None,
        iterations: 2,
        reason: None,
        needs: needs.map(|needs| needs.iter().map(|need| (*need).to_owned()).collect()),
        approve: None,
        answer: None,
        note: None,
    }
}

fn day(date: &str, models: &[(&str, i64)]) -> UsageDayView {
    let models: Vec<ModelDay> = models
        .iter()
        .map(|(model, tokens)| ModelDay { model: (*model).to_owned(), tokens: *tokens, cost_usd: 1.5 })
        .collect();
    let tokens = models.iter().fold(0_i64, |sum, model| sum.saturating_add(model.tokens));
    UsageDayView { date: date.to_owned(), models, tokens, cost_usd: 1.5 }
}

/// Where the elements of a class begin.
fn starts_of(svg: &str, element: &str, class: &str, coordinate: &str) -> Vec<f64> {
    let start = format!("<{element} class=\"{class}\"");
    let number = |tag: &str| {
        let value = tag.split_once(&format!(" {coordinate}=\""))?.1.split_once('"')?.0;
        value.parse().ok()
    };
    svg.split(&start).skip(1).filter_map(|tag| number(tag.split('>').next()?)).collect()
}

#[test]
fn any_number_makes_a_chart() {
    let nonsense = [i64::MIN, -1, 0, 1, 79, 80, 99, 100, 101, 12_345, i64::MAX];
    for value in nonsense {
        check(&ring(value, "tokens"));
        for other in nonsense {
            let points = [
                Point { at_ms: value, tokens: other, cost_micros: value },
                Point { at_ms: other, tokens: value, cost_micros: other },
            ];
            check(&spark(&points, Some(other)));
            let pauses = [Pause { from_ms: other, to_ms: Some(value), reason: None }];
            let marks = [PageMark { at_ms: other, kind: MarkKind::Warning, label: String::new() }];
            let pace = SpendPace {
                tokens_per_hour: value,
                usd_per_hour: Some(f64::INFINITY),
                first: None,
                seconds_left: Some(other),
                usd_then: Some(f64::NAN),
            };
            check(&burn_down(&BurnDown {
                budget: Some(value),
                usd_budget_micros: Some(other),
                pauses: &pauses,
                marks: &marks,
                from_ms: value,
                to_ms: other,
                pace: Some(&pace),
                ..burn(&points)
            }));
        }
        check(&stacked_days(&[day("2026-11-17", &[("a", value), ("b", i64::MAX)])]));
        check(&heat_map(&[[value; 24]; 9]));
        check(&bars("x", &[ChartBar { label: "a", value, words: value.to_string() }]));
    }
    let nan = UsageDayView { cost_usd: f64::NAN, ..day("2026-11-17", &[]) };
    check(&stacked_days(&[nan]));
}

#[test]
fn nothing_makes_a_chart_too() {
    for chart in
        [spark(&[], None), burn_down(&burn(&[])), stacked_days(&[]), heat_map(&[]), stage_graph(&[]), bars("x", &[])]
    {
        check(&chart);
    }
    let once = [point(5, 10, 0)];
    check(&spark(&once, None));
    let at_once = [point(5, 10, 1), point(5, 20, 2)];
    check(&burn_down(&BurnDown { from_ms: at_once[0].at_ms, to_ms: at_once[0].at_ms, ..burn(&at_once) }));
}

#[test]
fn text_in_a_chart_is_never_markup() {
    let marks = [PageMark { at_ms: START, kind: MarkKind::Failed, label: HOSTILE.to_owned() }];
    let pauses = [Pause { from_ms: START, to_ms: None, reason: Some(HOSTILE.to_owned()) }];
    let mut hostile = stage(1, HOSTILE, StageStatus::Failed, None);
    hostile.reason = Some(HOSTILE.to_owned());
    let charts = [
        ring(10, HOSTILE),
        burn_down(&BurnDown { marks: &marks, pauses: &pauses, ..burn(&[]) }),
        stacked_days(&[day(HOSTILE, &[(HOSTILE, 5)])]),
        stage_graph(&[hostile]),
        bars(HOSTILE, &[ChartBar { label: HOSTILE, value: 1, words: HOSTILE.to_owned() }]),
    ];
    for chart in charts {
        check(&chart);
        assert!(chart.contains("&lt;/t") && !chart.contains("<script"), "{chart}");
    }
}

#[test]
fn a_ring_says_its_number_and_fills_up() {
    let half = ring(50, "tokens");
    assert!(half.contains("<title>tokens: 50% used</title><desc>within the limit</desc>"), "{half}");
    assert!(half.contains("stroke-dasharray=\"50 100\"") && half.contains(">50%</text>"), "{half}");
    let over = ring(140, "money");
    assert!(over.contains("stroke-dasharray=\"100 100\"") && over.contains(">140%</text>"), "{over}");
    assert!(over.contains("<desc>the limit is reached</desc>"), "{over}");
    assert!(ring(5_000, "money").contains("&gt;999%"));
}

#[test]
fn many_points_are_thinned_out_and_the_ends_are_kept() {
    let points: Vec<Point> =
        (0..10_000).map(|index| Point { at_ms: START + index, tokens: index, cost_micros: 0 }).collect();
    let chart = burn_down(&burn(&points));
    check(&chart);
    assert!(chart.len() < 20_000, "{} bytes", chart.len());
    assert!(chart.contains("9,999 tokens"), "{chart}");
    assert!(spark(&points, None).len() < 10_000);
}

#[test]
fn a_burn_down_shows_the_budget_pauses_marks_and_the_pace() {
    let points = [point(0, 0, 0), point(30, 400_000, 900_000), point(60, 900_000, 2_500_000)];
    let pauses = [Pause { from_ms: START + 40 * MINUTE, to_ms: Some(START + 50 * MINUTE), reason: None }];
    let marks = [
        PageMark { at_ms: START + 20 * MINUTE, kind: MarkKind::Compaction, label: "auto".to_owned() },
        PageMark { at_ms: START + 55 * MINUTE, kind: MarkKind::Failed, label: "cargo test".to_owned() },
    ];
    let pace = SpendPace {
        tokens_per_hour: 900_000,
        usd_per_hour: Some(2.5),
        first: None,
        seconds_left: Some(600),
        usd_then: None,
    };
    let chart = burn_down(&BurnDown {
        budget: Some(1_000_000),
        usd_budget_micros: Some(5_000_000),
        pauses: &pauses,
        marks: &marks,
        to_ms: START + 60 * MINUTE,
        pace: Some(&pace),
        ..burn(&points)
    });
    check(&chart);
    assert!(chart.contains("900,000 of 1,000,000 tokens and $2.50 of $5.00"), "{chart}");
    assert!(chart.contains("paused 1 time; compaction (auto) at "), "{chart}");
    for word in
        [">budget 1M<", ">budget $5.00<", ">at this pace<", ">paused<", ">compaction<", ">check failed<", ">$6<"]
    {
        assert!(chart.contains(word), "{word} in {chart}");
    }
    // One line in each plot, and one in the legend.
    assert_eq!(chart.matches("chart-projection").count(), 3);
    assert_eq!(chart.matches("class=\"chart-mark\"").count(), 2);
    assert!(!chart.contains(">warning<"), "{chart}");
}

#[test]
fn a_budget_far_above_the_line_does_not_flatten_it() {
    let points = [point(0, 0, 0), point(60, 10_000, 0)];
    let chart = burn_down(&BurnDown { budget: Some(1_000_000_000), ..burn(&points) });
    assert!(chart.contains(">budget 1B, far above<") && chart.contains(">10k<"), "{chart}");
    assert!(!chart.contains("US dollars"), "no money was spent: {chart}");
}

#[test]
fn an_axis_has_round_amounts_up_to_the_most() {
    assert_eq!(ticks::amounts(900_000, 4), [0, 500_000, 1_000_000]);
    assert_eq!(ticks::amounts(1_000, 4), [0, 500, 1_000]);
    assert_eq!(ticks::amounts(0, 4), [0, 1]);
    for most in [1, 7, 99, 12_345, 1_000_000_000_000_000, i64::MAX] {
        let amounts = ticks::amounts(most, 4);
        assert!(amounts.len() <= 5 && amounts.last() >= Some(&most), "{most}: {amounts:?}");
    }
    assert_eq!(ticks::money_name(2_500_000, 500_000), "$2.50");
    assert_eq!(ticks::money_name(5_000_000, 5_000_000), "$5");
    assert_eq!(ticks::money_name(20_000, 1_000), "$0.0200");
}

#[test]
fn a_time_axis_has_few_names_inside_its_span() {
    for span in [1, MINUTE, 90 * MINUTE, 26 * 60 * MINUTE, 40 * 1_440 * MINUTE, 4_000 * 1_440 * MINUTE] {
        let times = ticks::times(START, START + span);
        assert!((1..=6).contains(&times.len()), "{span}: {times:?}");
        assert!(times.iter().all(|(at, _)| (START..=START + span).contains(at)), "{span}: {times:?}");
    }
    let day = ticks::times(START, START + 90 * MINUTE);
    assert!(day.len() > 2, "{day:?}");
}

#[test]
fn days_are_stacked_by_model_and_small_models_are_one() {
    let days = [
        day("2026-11-16", &[("opus", 500), ("haiku", 100)]),
        day("2026-11-17", &[("m1", 60), ("m2", 50), ("m3", 40), ("m4", 30), ("m5", 20)]),
    ];
    let chart = stacked_days(&days);
    check(&chart);
    assert!(chart.contains("from 2026-11-16 to 2026-11-17; the most on 2026-11-16: 600 tokens"), "{chart}");
    assert!(chart.contains(">others<") && !chart.contains(">m5<"), "{chart}");
    assert_eq!(starts_of(&chart, "rect", "chart-c0", "x").len(), 2, "a day and the legend: {chart}");
    assert!(chart.contains("url(#chart-hatch-1)"), "areas differ without colours: {chart}");
}

#[test]
fn busy_hours_are_larger() {
    let mut hours = vec![[0; 24]; 7];
    hours[2][14] = 1_000;
    hours[6][3] = 50;
    let chart = heat_map(&hours);
    check(&chart);
    assert!(chart.contains("The most on Wed at 14:00: 1,000 tokens"), "{chart}");
    assert!(chart.contains("<title>Sun 03:00: 50 tokens</title>"), "{chart}");
    assert_eq!(chart.matches("chart-heat-none").count(), 7 * 24 - 2);
    assert!(chart.contains("class=\"chart-heat-4\"") && chart.contains("class=\"chart-heat-1\""), "{chart}");
}

#[test]
fn a_stage_stands_right_of_what_it_waits_for() {
    let stages = [
        stage(1, "plan", StageStatus::Completed, None),
        stage(2, "build", StageStatus::Running, None),
        stage(3, "docs", StageStatus::Failed, Some(&["plan"])),
        stage(4, "ship", StageStatus::AwaitingApproval, Some(&["build", "docs"])),
    ];
    let chart = stage_graph(&stages);
    check(&chart);
    let lefts = starts_of(&chart, "rect", "chart-box", "x");
    assert!(lefts[0] < lefts[1] && (lefts[1] - lefts[2]).abs() < 0.1 && lefts[2] < lefts[3], "{lefts:?}");
    assert_eq!(chart.matches("chart-edge").count(), 4);
    for word in ["completed", "running", "failed", "waits for your yes"] {
        assert!(chart.contains(&format!(">{word}</text>")), "{word} in {chart}");
    }
}

#[test]
fn stages_that_wait_for_each_other_are_drawn_all_the_same() {
    let ring = [
        stage(1, "a", StageStatus::Pending, Some(&["b"])),
        stage(2, "b", StageStatus::Skipped, Some(&["a", "nowhere"])),
    ];
    let chart = stage_graph(&ring);
    check(&chart);
    assert_eq!(chart.matches("chart-box").count(), 2);
    let many: Vec<StageView> = (1..=500).map(|number| stage(number, "s", StageStatus::Pending, Some(&[]))).collect();
    let chart = stage_graph(&many);
    check(&chart);
    assert!(chart.contains("and 380 more stages"), "{chart}");
}

#[test]
fn the_styles_name_every_class_that_a_chart_uses() {
    let points = [point(0, 0, 0), point(60, 10, 5)];
    let used = [
        ring(99, "x"),
        spark(&points, Some(20)),
        burn_down(&BurnDown { budget: Some(20), ..burn(&points) }),
        heat_map(&[[1; 24]; 7]),
        stacked_days(&[day("2026-11-17", &[("a", 5)])]),
        bars("x", &[ChartBar { label: "a", value: 1, words: "1".to_owned() }]),
        stage_graph(&[stage(1, "a", StageStatus::Deciding, None)]),
    ];
    let unstyled = ["chart-unit", "chart-hour", "chart-day", "chart-mark", "chart-paused"];
    for class in used.iter().flat_map(|svg| svg.split("class=\"").skip(1)).filter_map(|rest| rest.split('"').next()) {
        for name in class.split(' ').filter(|name| !unstyled.contains(name)) {
            assert!(CSS.contains(&format!(".{name}")), "{name} has no style");
        }
    }
}
