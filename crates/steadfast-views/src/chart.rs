//! Charts as SVG: pure functions from values to markup that can stand in a page or in a file. Text is escaped, everything
//! else is a number or one of our own class names. There is no `style` attribute, because the page's policy forbids it:
//! colours are those of `templates/chart.css` ([`CSS`]), sizes follow the page. Every chart says in words what it shows.

mod bars;
mod burn_down;
mod number;
mod ring;
mod spark;
mod stages;
mod svg;
mod ticks;
mod usage;

pub use bars::{ChartBar, bars};
pub use burn_down::{BurnDown, burn_down};
pub use ring::ring;
pub use spark::spark;
pub use stages::stage_graph;
pub use usage::{heat_map, stacked_days};

/// The colours and fonts of all charts.
pub const CSS: &str = include_str!("../templates/chart.css");

#[cfg(test)]
mod tests;
