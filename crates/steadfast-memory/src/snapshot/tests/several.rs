//! A durable goal and what the user stated beside it, when there is not room for both.

use super::*;

fn both(host: Host, first: &str, second: &str) -> SessionMemory {
    SessionMemory {
        goal: Some(durable(first, true)),
        stated: Some(StatedGoal { set_at_ms: 20, ..stated(second) }),
        ..overfull(host, 100)
    }
}

#[test]
fn the_first_of_two_goals_stays_whole_as_long_as_it_fits_alone() {
    for (host, letter, lengths) in [(Host::Codex, "目", [1_500, 2_500]), (Host::Claude, "&", [900, 1_500])] {
        for length in lengths {
            let (first, second) =
                (format!("First {}", letter.repeat(length)), format!("Second {}", letter.repeat(length)));
            let rendered = rendered(&both(host, &first, &second), &Framing::after(After::Compaction));
            assert!(host.capabilities().start_cap.fits(&rendered));
            assert!(rendered.contains(&text::escape_xml(&first)), "{host} {length}: {rendered}");
            let second_shown = rendered.contains("Second ") && rendered.contains("[cut: ");
            let left_out = rendered.contains("than fits here: `steadfast session show s-1 --json` has the rest.");
            assert!(second_shown != left_out, "{host} {length}: {rendered}");
        }
    }
}

#[test]
fn a_goal_that_was_cut_before_it_was_kept_is_nowhere_whole() {
    let long = steadfast_model::memory::stated::kept(&"目".repeat(9_000));
    let memory = SessionMemory { stated: Some(stated(&long)), ..nothing(Host::Codex) };
    let rendered = rendered(&memory, &Framing::after(After::Resume));
    assert!(rendered.contains("has all that was kept]") && !rendered.contains("the whole text"), "{rendered}");
}
