//! A durable goal and what the user stated beside it, when there is not room for both.

use super::*;

fn both(host: Host, first: &str, second: &str) -> Recollection {
    Recollection {
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
            let told = told(&both(host, &first, &second), &Framing::after(After::Compaction));
            assert!(host.capabilities().start_cap.fits(&told));
            assert!(told.contains(&text::escape_xml(&first)), "{host} {length}: {told}");
            let second_told = told.contains("Second ") && told.contains("[cut: ");
            let left_out = told.contains("no room here: `steadfast session show s-1 --json` has it.");
            assert!(second_told != left_out, "{host} {length}: {told}");
        }
    }
}

#[test]
fn a_goal_that_was_cut_before_it_was_kept_is_nowhere_whole() {
    let long = crate::memory::stated::kept(&"目".repeat(9_000));
    let recollection = Recollection { stated: Some(stated(&long)), ..nothing(Host::Codex) };
    let told = told(&recollection, &Framing::after(After::Resume));
    assert!(told.contains("has all that was kept]") && !told.contains("the whole text"), "{told}");
}
