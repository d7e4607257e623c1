use steadfast_model::testing::goal;

use super::*;

impl ActionCommand {
    pub(in crate::actions) fn for_test(action: Action) -> Self {
        Self { action, subject: "g".into(), words: Vec::new(), directory: "/".into() }
    }
}

fn words(action: Action, fields: &ActionFields) -> Result<String, String> {
    goal_words(&goal(), action, fields).map(|words| words.join(" ")).map_err(|error| error.to_string())
}

#[test]
fn an_action_becomes_a_command_about_the_session() {
    let session = goal().session_id;
    let none = ActionFields::default();
    let of = |verb: &str| Ok(format!("goal --session={session} {verb}"));
    assert_eq!(words(Action::Pause, &none), of("pause"));
    assert_eq!(words(Action::Complete, &none), of("complete"));
    assert_eq!(words(Action::Reconcile, &none), of("reconcile --accept-reset"));
    let amounts =
        ActionFields { tokens: Some(" 2M ".to_owned()), usd: Some("5".to_owned()), ..ActionFields::default() };
    assert_eq!(words(Action::Extend, &amounts), of("extend --add-tokens=2M --add-usd=5"));
    assert_eq!(words(Action::Extend, &none), Err("`amount` is missing".into()));
    let places = ActionFields { from: Some("2".to_owned()), to: Some("1".to_owned()), ..ActionFields::default() };
    assert_eq!(words(Action::QueueMove, &places), of("queue move -- 2 1"));
    assert_eq!(words(Action::QueueDrop, &places), of("queue drop -- 2"));
    let adopter = ActionFields { session: Some("s2".to_owned()), ..ActionFields::default() };
    let moved = goal();
    let adopt = goal_words(&moved, Action::Adopt, &adopter).unwrap();
    assert_eq!(adopt.join(" "), format!("goal --session=s2 adopt -- {}", moved.goal_id));
    assert_eq!(words(Action::Kill, &none), Err("`kill` does not apply to a goal".into()));
}

#[test]
fn no_field_becomes_a_flag() {
    for hostile in ["--all", "-1", "--db=/tmp/x", "1 --all", "\u{2014}x"] {
        let fields = ActionFields {
            tokens: Some(hostile.to_owned()),
            session: Some(hostile.to_owned()),
            ..ActionFields::default()
        };
        let extend = goal_words(&goal(), Action::Extend, &fields).unwrap();
        assert_eq!(extend[3..], [format!("--add-tokens={hostile}")]);
        let adopt = goal_words(&goal(), Action::Adopt, &fields).unwrap();
        assert_eq!(adopt[1], format!("--session={hostile}"));
    }
    for number in ["-1", "0", "--all", "1;ls", "1.5", "99999999999", ""] {
        let fields =
            ActionFields { from: Some(number.to_owned()), to: Some("1".to_owned()), ..ActionFields::default() };
        assert!(words(Action::QueueMove, &fields).is_err(), "{number}");
    }
}

#[test]
fn fields_are_bounded_and_printable() {
    assert_eq!(text("text", Some(" a\r\nb ")).unwrap(), "a\nb");
    for wrong in ["", " ", "-", " - ", "a\0b", "a\u{1b}[31mb", &"x".repeat(LONGEST_TEXT + 1)] {
        assert!(text("text", Some(wrong)).is_err(), "{wrong:?}");
    }
    assert!(text("text", Some(&"x".repeat(LONGEST_TEXT))).is_ok());
    for wrong in ["", "a\nb", "a\0", &"x".repeat(LONGEST_WORD + 1)] {
        assert!(word("stage", Some(wrong)).is_err(), "{wrong:?}");
    }
    assert!(word("stage", None).is_err());
}
