//! Clocks that jump: by hand, and any.

use proptest::prelude::*;

use super::*;
use crate::clock::HOUR;

const NOON: Millis = 1_763_200_800_000;
const YEAR: Millis = 365 * DAY;

fn seen(wall_ms: Millis, boot: &str, boot_ms: Millis) -> MachineClocks {
    MachineClocks { wall_ms, boot_id: boot.to_owned(), boot_ms, suspended_ms: 0 }
}

fn first() -> Tick {
    tick(None, &seen(NOON, "a", HOUR))
}

/// The steady time and the time of deletion after a second look, since the first.
fn then(wall_ms: Millis, boot: &str, boot_ms: Millis) -> (Millis, Millis) {
    let tick = tick(Some(&first()), &seen(wall_ms, boot, boot_ms));
    (tick.now_ms - NOON, tick.aged_ms - NOON)
}

#[test]
fn within_a_boot_a_jump_changes_nothing() {
    let after_a_minute = |jump| then(NOON + MINUTE + jump, "a", HOUR + MINUTE);
    assert_eq!(after_a_minute(0), (MINUTE, MINUTE));
    assert_eq!(after_a_minute(YEAR), (MINUTE, MINUTE));
    assert_eq!(after_a_minute(-HOUR), (MINUTE, MINUTE - HOUR), "nothing is deleted earlier");
    assert_eq!(after_a_minute(-5_000), (MINUTE, MINUTE - 5_000), "another process may have used that time");
    assert_eq!(after_a_minute(SLACK), (MINUTE + SLACK, MINUTE + SLACK), "it was put right");
    assert_eq!(after_a_minute(SLACK + 1), (MINUTE, MINUTE));
}

#[test]
fn over_a_boot_time_never_goes_back() {
    assert_eq!(then(NOON + DAY, "b", MINUTE), (DAY, 24 * MINUTE), "old rows age slowly after an absence");
    assert_eq!(then(NOON - DAY, "b", MINUTE), (LOOK_EVERY, -DAY), "the last look may be that old");
    assert_eq!(then(NOON + YEAR, "b", MINUTE), (YEAR, 24 * MINUTE));
    assert_eq!(then(NOON + YEAR, "b", 10 * DAY), (YEAR, 10 * DAY));
    // The same number of the boot with a smaller counter is another boot.
    assert_eq!(then(NOON - DAY, "a", 0), (0, -DAY));
    // No number of the boot is known: the wall clock, which never goes back.
    let unknown = tick(None, &seen(NOON, "", HOUR));
    assert_eq!(tick(Some(&unknown), &seen(NOON - HOUR, "", 2 * HOUR)).now_ms, NOON);
    assert_eq!(tick(Some(&unknown), &seen(NOON + HOUR, "", 2 * HOUR)).now_ms, NOON + HOUR);
}

#[test]
fn two_boot_ids_on_one_machine_do_not_speed_time_up() {
    for jump in [0, -HOUR] {
        let mut last = first();
        for second in 1..=600 {
            let id = if second % 2 == 0 { "host" } else { "container" };
            let passed = second * SECOND;
            let next = tick(Some(&last), &seen(NOON + passed + jump, id, HOUR + passed));
            assert!(next.now_ms >= last.now_ms);
            last = next;
        }
        assert_eq!(last.now_ms, NOON + 600 * SECOND, "with a clock that jumped by {jump}");
    }
}

/// A machine without a battery for its clock, or a virtual one that was stopped: the wall clock was put right by two
/// days within the boot. A deadline that was typed then must not come two days early after the next boot.
#[test]
fn a_difference_that_stays_is_kept_over_a_boot() {
    let put_right = tick(Some(&first()), &seen(NOON + 2 * DAY, "a", HOUR + MINUTE));
    assert_eq!(put_right.now_ms, NOON + MINUTE);
    let next = tick(Some(&put_right), &seen(NOON + 2 * DAY + HOUR, "b", MINUTE));
    assert_eq!(next.now_ms, NOON + MINUTE + HOUR);
    let next = tick(Some(&put_right), &seen(NOON + 2 * DAY + SECOND, "b", MINUTE));
    assert_eq!(next.now_ms, NOON + MINUTE + LOOK_EVERY, "the last look may be that old");
    // It was wrong for a while, and is right again.
    let next = tick(Some(&put_right), &seen(NOON + HOUR, "b", MINUTE));
    assert_eq!(next.now_ms, NOON + HOUR);
}

/// One boot began with a clock that was ahead, and it was put right within that boot. How long the machine was off shows
/// on the wall clock all the same.
#[test]
fn time_without_power_counts_although_the_wall_clock_is_behind() {
    for ahead in [12 * HOUR, 20 * HOUR, 200 * DAY] {
        let put_right = tick(Some(&first()), &seen(NOON + MINUTE - ahead, "a", HOUR + MINUTE));
        let after =
            |passed| tick(Some(&put_right), &seen(put_right.wall_ms + passed, "b", MINUTE)).now_ms - put_right.now_ms;
        assert_eq!(after(8 * HOUR), 8 * HOUR, "{ahead}");
        assert_eq!(after(SECOND), LOOK_EVERY, "the last look may be that old");
        assert_eq!(after(-SECOND), LOOK_EVERY, "it was set again");
        // It has reached the steady time: it was behind for a while, and is right again.
        assert_eq!(after(ahead - SLACK), LOOK_EVERY);
        assert_eq!(after(ahead + HOUR), HOUR);
    }
}

/// A clock in local time is ahead at each boot, until the network puts it right.
#[test]
fn a_clock_that_is_ahead_at_each_boot_adds_up_to_nothing() {
    let mut last = first();
    for boot in 1..20 {
        let (id, off) = (boot.to_string(), boot * HOUR);
        let before = last.clone();
        let real = NOON + (1..=boot).map(|boot| boot * HOUR).sum::<Millis>();
        last = tick(Some(&last), &seen(real + 12 * HOUR, &id, MINUTE));
        last = tick(Some(&last), &seen(real, &id, MINUTE));
        let passed = last.now_ms - before.now_ms;
        assert_eq!(passed, if boot == 1 { off + 12 * HOUR } else { off }, "{boot}");
    }
}

/// Without a battery, the clock begins at the same moment with each boot; that is no time to measure with.
#[test]
fn a_clock_without_a_battery_does_not_leap() {
    let ahead = Tick { now_ms: NOON + DAY, ..first() };
    let unset = tick(Some(&ahead), &seen(HOUR, "b", HOUR));
    let next = tick(Some(&unset), &seen(2 * HOUR, "c", 2 * HOUR));
    assert_eq!(next.now_ms - unset.now_ms, LOOK_EVERY);
    let next = tick(Some(&unset), &seen(NOON + 2 * HOUR, "c", 2 * HOUR));
    assert_eq!(next.now_ms - unset.now_ms, LOOK_EVERY, "not half a century");
}

#[test]
fn sleep_is_known_within_a_boot() {
    let slept = |boot: &str, suspended_ms| {
        first().slept_until(&MachineClocks { suspended_ms, ..seen(NOON + HOUR, boot, 2 * HOUR) })
    };
    assert_eq!((slept("a", 50 * MINUTE), slept("b", 50 * MINUTE), slept("a", -5)), (50 * MINUTE, 0, 0));
}

/// What happens between two looks: real time that passes, a jump of the wall clock, a boot.
fn steps() -> impl Strategy<Value = Vec<(Millis, Millis, bool)>> {
    let passed = prop_oneof![0..5 * MINUTE, 0..3 * DAY];
    let jump = prop_oneof![3 => Just(0), 1 => -SLACK..SLACK, 1 => -2 * YEAR..2 * YEAR];
    prop::collection::vec((passed, jump, prop::bool::weighted(0.1)), 1..60)
}

proptest! {
    #[test]
    fn any_clock_gives_a_time_that_only_goes_forward(steps in steps()) {
        let mut machine = seen(NOON, "0", HOUR);
        let mut last = tick(None, &machine);
        for (number, (passed, jump, boots)) in steps.into_iter().enumerate() {
            machine.wall_ms += passed + jump;
            machine.boot_ms += passed;
            if boots {
                machine.boot_id = format!("boot {number}");
                machine.boot_ms = passed / 2;
            }
            let next = tick(Some(&last), &machine);
            let real = last.passed_until(&machine);
            prop_assert!(next.now_ms >= last.now_ms);
            prop_assert!(next.aged_ms <= next.now_ms.min(machine.wall_ms));
            prop_assert!(next.aged_ms <= last.aged_ms + real.max((CATCH_UP * real).min(DAY)));
            if boots {
                let moved = machine.wall_ms - last.wall_ms;
                let most = machine.wall_ms.max(last.now_ms + moved.max(LOOK_EVERY));
                prop_assert!(next.now_ms <= most, "by no more than the wall clock moved");
                let before_now = last.wall_ms.max(NO_STORE_BEFORE)..last.now_ms - SLACK;
                let stays_apart = last.wall_ms >= last.now_ms || before_now.contains(&machine.wall_ms);
                if jump == 0 && stays_apart && last.wall_ms >= NO_STORE_BEFORE {
                    prop_assert!(next.now_ms >= last.now_ms + passed, "time without power");
                    prop_assert!(next.now_ms <= last.now_ms + passed.max(LOOK_EVERY));
                }
                let was_behind = last.wall_ms <= last.now_ms;
                if was_behind && machine.wall_ms >= last.now_ms {
                    prop_assert_eq!(next.now_ms, machine.wall_ms);
                }
            } else {
                prop_assert!(next.now_ms >= last.now_ms + passed);
                prop_assert!(next.now_ms <= last.now_ms + passed + SLACK);
            }
            last = next;
        }
    }
}
