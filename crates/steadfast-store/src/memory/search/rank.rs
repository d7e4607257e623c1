//! The order of hits: those with more of the words, more often and in shorter texts, come first. It is computed from the
//! hits alone, so that its cost does not depend on how much else is stored.

use std::cmp::Ordering;

use super::Hit;

/// How fast further occurrences of a word count less, and how much the length of a text counts.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Sorts hits by how well they match; of equal ones the newest first.
pub(super) fn best_first(hits: &mut [Hit], words: &[&str]) {
    let wanted: Vec<String> = words.iter().flat_map(|word| tokens(word)).collect();
    let counted: Vec<(Vec<f64>, f64)> = hits.iter().map(|hit| counts(hit, &wanted)).collect();
    let average = counted.iter().map(|(_, length)| length).sum::<f64>() / as_float(counted.len()).max(1.0);
    // A word that few of the hits have says more.
    let weights: Vec<f64> = (0..wanted.len())
        .map(|number| {
            let having = counted.iter().filter(|(counts, _)| counts.get(number).is_some_and(|count| *count > 0.0));
            let (having, all) = (as_float(having.count()), as_float(counted.len()));
            (1.0 + (all - having + 0.5) / (having + 0.5)).ln().max(0.01)
        })
        .collect();
    let score = |(counts, length): &(Vec<f64>, f64)| -> f64 {
        let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / average.max(1.0));
        counts.iter().zip(&weights).map(|(count, weight)| weight * count * (SATURATION + 1.0) / (count + norm)).sum()
    };
    let mut scored: Vec<(f64, Hit)> = counted.iter().map(score).zip(hits.iter().cloned()).collect();
    scored.sort_by(|(one, a), (other, b)| {
        other.partial_cmp(one).unwrap_or(Ordering::Equal).then_with(|| b.event.id.cmp(&a.event.id))
    });
    for (place, (_, hit)) in hits.iter_mut().zip(scored) {
        *place = hit;
    }
}

/// How often a hit has each word, the last one as a beginning, and how many words it has.
fn counts(hit: &Hit, wanted: &[String]) -> (Vec<f64>, f64) {
    let mut counts = vec![0.0; wanted.len()];
    let mut length = 0.0;
    for token in tokens(&hit.event.text).chain(tokens(&hit.event.subject)) {
        length += 1.0;
        for (number, (count, word)) in counts.iter_mut().zip(wanted).enumerate() {
            let is_last = number + 1 == wanted.len();
            if token == *word || (is_last && token.starts_with(word.as_str())) {
                *count += 1.0;
            }
        }
    }
    (counts, length)
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_lowercase)
}

fn as_float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
