//! Writes SVG. Callers give numbers, class names of our own and text; text is escaped here and nowhere else.

use std::fmt::Write as _;

use steadfast_model::text;

pub(super) struct Svg {
    markup: String,
}

impl Svg {
    /// A chart of this many units, which fills the width it gets. `title` says what it is, `description` what it shows.
    pub(super) fn new(class: &'static str, (width, height): (f64, f64), title: &str, description: &str) -> Self {
        Self::start(class, (width, height), "", title, description)
    }

    /// A chart that keeps its size: one unit is one pixel.
    pub(super) fn of_size(class: &'static str, (width, height): (f64, f64), title: &str, description: &str) -> Self {
        let size = format!(" width=\"{}\" height=\"{}\"", Number(width), Number(height));
        Self::start(class, (width, height), &size, title, description)
    }

    fn start(class: &'static str, (width, height): (f64, f64), size: &str, title: &str, description: &str) -> Self {
        let mut svg = Self { markup: String::with_capacity(2_048) };
        let (width, height) = (Number(width), Number(height));
        svg.push(format_args!(
            "<svg class=\"chart {class}\" viewBox=\"0 0 {width} {height}\"{size} \
             role=\"img\"><title>{}</title><desc>{}</desc>",
            Text(title),
            Text(description)
        ));
        svg
    }

    pub(super) fn finish(mut self) -> String {
        self.markup.push_str("</svg>");
        self.markup
    }

    /// Shapes that share a text, which browsers show when the pointer rests on them.
    pub(super) fn group(&mut self, class: &'static str, title: &str, shapes: impl FnOnce(&mut Self)) {
        self.push(format_args!("<g class=\"{class}\"><title>{}</title>", Text(title)));
        shapes(self);
        self.markup.push_str("</g>");
    }

    pub(super) fn rect(&mut self, class: &'static str, [x, y, width, height]: [f64; 4], radius: f64) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(Number);
        let radius = Number(radius);
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>"
        ));
    }

    pub(super) fn line(&mut self, class: &'static str, [x1, y1, x2, y2]: [f64; 4]) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Number);
        self.push(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
    }

    pub(super) fn circle(&mut self, class: &'static str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(Number);
        self.push(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"));
    }

    /// A circle of which `percent` is drawn, from the top to the right.
    pub(super) fn arc(&mut self, class: &'static str, (x, y): (f64, f64), radius: f64, percent: f64) {
        let [x, y, radius, percent] = [x, y, radius, percent.clamp(0.0, 100.0)].map(Number);
        self.push(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"none\" pathLength=\"100\" \
             stroke-dasharray=\"{percent} 100\" transform=\"rotate(-90 {x} {y})\"/>"
        ));
    }

    /// Straight lines from point to point.
    pub(super) fn path(&mut self, class: &'static str, points: &[(f64, f64)], is_closed: bool) {
        self.push(format_args!("<path class=\"{class}\" d=\""));
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            self.push(format_args!("{command}{} {}", Number(*x), Number(*y)));
        }
        self.markup.push_str(if is_closed { "Z\"/>" } else { "\"/>" });
    }

    /// A curve that leaves and arrives level.
    pub(super) fn curve(&mut self, class: &'static str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2, middle] = [x1, y1, x2, y2, f64::midpoint(x1, x2)].map(Number);
        self.push(format_args!(
            "<path class=\"{class}\" fill=\"none\" d=\"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}\"/>"
        ));
    }

    pub(super) fn text(&mut self, class: &'static str, (x, y): (f64, f64), anchor: Anchor, words: &str) {
        let (x, y, anchor) = (Number(x), Number(y), anchor.name());
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
            Text(words)
        ));
    }

    /// Hatchings that tell areas apart without their colours. Every chart that has them defines the same ones.
    pub(super) fn hatchings(&mut self) {
        self.markup.push_str(HATCHINGS);
    }

    /// Covers an area with the hatching of this number; the first has none.
    pub(super) fn hatch(&mut self, number: usize, [x, y, width, height]: [f64; 4]) {
        if (1..=HATCHES).contains(&number) {
            let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(Number);
            self.push(format_args!(
                "<rect fill=\"url(#chart-hatch-{number})\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
            ));
        }
    }

    fn push(&mut self, markup: std::fmt::Arguments<'_>) {
        let _ = self.markup.write_fmt(markup);
    }
}

const HATCHES: usize = 5;
const HATCHINGS: &str = concat!(
    "<defs>",
    "<pattern id=\"chart-hatch-1\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">",
    "<path class=\"chart-hatch\" d=\"M0 6L6 0\"/></pattern>",
    "<pattern id=\"chart-hatch-2\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">",
    "<circle class=\"chart-hatch-dot\" cx=\"2.5\" cy=\"2.5\" r=\"1\"/></pattern>",
    "<pattern id=\"chart-hatch-3\" width=\"6\" height=\"4\" patternUnits=\"userSpaceOnUse\">",
    "<path class=\"chart-hatch\" d=\"M0 2L6 2\"/></pattern>",
    "<pattern id=\"chart-hatch-4\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">",
    "<path class=\"chart-hatch\" d=\"M0 0L6 6\"/></pattern>",
    "<pattern id=\"chart-hatch-5\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">",
    "<path class=\"chart-hatch\" d=\"M3 0L3 6M0 3L6 3\"/></pattern>",
    "</defs>"
);

#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A coordinate with at most one digit after the point.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Adding zero makes a negative zero positive.
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() + 0.0 } else { 0.0 };
        write!(formatter, "{}", tenths / 10.0)
    }
}

struct Text<'a>(&'a str);

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in text::printable(self.0).chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                // No characters of XML.
                '\u{fffe}' | '\u{ffff}' => {}
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}
