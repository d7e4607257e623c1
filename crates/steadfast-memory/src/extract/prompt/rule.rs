//! Which first sentences set a rule or a role for the time to come. Their openings are common words, so that praise,
//! complaints and jobs for once begin the same way: each opening says what must or must not follow it. A rule is kept
//! for the whole session, so in doubt there is none.

use super::{asks, strip_word};

/// Words before an opening that change nothing.
const FILLERS: &str =
    "ok|okay|sure|please|and|also|so|well|hey|hi|note|important|remember|bitte|por favor|s'il te plaît|请";

/// What must be true of the words behind an opening.
#[derive(Debug, Clone, Copy)]
enum Needs {
    Nothing,
    /// The first word is not one of these.
    Not(&'static str),
    /// The words begin with one of these.
    Begins(&'static str),
    /// The sentence does not end like a complaint.
    NoComplaint,
    /// An English verb that tells someone what to do, not what happens.
    EnglishOrder,
    /// Somewhere a German infinitive, and no remark.
    GermanOrder,
    /// An Italian infinitive.
    ItalianOrder,
    /// A Russian verb that is neither in the present nor in the past.
    RussianOrder,
    /// A clause of its own behind a comma, about something to do.
    Consequence,
    /// A verb somewhere: `that` is no pronoun then.
    Statement,
    /// A role, not praise.
    Role(&'static str),
    /// How to answer, not whom.
    Manner(&'static str),
}

const EXPLICIT: Needs = Needs::Begins(",|:|please|you|we|use|do|don't|only|always|never|keep|make");
const ENGLISH_ROLE: Needs = Needs::Role(
    "a|an|the|my|our|now a|now an|now the|now my|now our|to|not to|not allowed|not permitted|never to|only to|\
    allowed to|only allowed|responsible for|in charge of",
);
const ENGLISH_MANNER: Needs =
    Needs::Manner("in|with|only|as|like|using|without|always|briefly|concisely|tersely|shortly");
const FRENCH_TALK: Needs = Needs::Not(
    "génial|géniale|super|incroyable|fantastique|formidable|nul|nulle|sur|dans|bloqué|trop|très|en|le|la|\
    parfait|parfaite|sûr|sûre|prêt|prête|là|où",
);
const SPANISH_TALK: Needs = Needs::Not(
    "increíble|genial|muy|lo|el|la|mi|tan|bueno|buena|estupendo|crack|grande|incrível|ótimo|ótima|demais|o|a|\
    meu",
);
const ROMANCE_COMPLAINT: Needs = Needs::Not(
    "pas|le|la|les|aussi|en|plus|autant|un|une|du|des|vu|eu|de|falla|falha|se|si|está|es|é|hay|há|me|da|dá|el|\
    los|las|lo|il|o|a|os|as|um|uma|una|funciona|funcionó|funcionou|funziona|fallaba|igual|ha|ho|había|he|\
    pasa|sale|trava|va|crasha|crashea|vi|mais",
);

/// How rules for the time to come and roles begin. Those of scripts with blanks end where the word ends.
const OPENINGS: [(&str, Needs); 58] = [
    ("always", Needs::EnglishOrder),
    ("never", Needs::EnglishOrder),
    ("from now on", Needs::Nothing),
    ("from here on", Needs::Nothing),
    ("going forward", EXPLICIT),
    ("in the future", EXPLICIT),
    ("you are", ENGLISH_ROLE),
    ("you're", ENGLISH_ROLE),
    ("act as", Needs::Nothing),
    ("respond", ENGLISH_MANNER),
    ("reply in", Needs::Manner("")),
    ("answer in", Needs::Manner("")),
    ("do not ever", Needs::Nothing),
    ("don't ever", Needs::Nothing),
    ("remember to", Needs::Nothing),
    ("remember that", Needs::Statement),
    ("every time", Needs::Consequence),
    ("immer", Needs::GermanOrder),
    ("nie", Needs::GermanOrder),
    ("niemals", Needs::GermanOrder),
    ("ab jetzt", Needs::Nothing),
    ("ab sofort", Needs::Nothing),
    ("du bist", Needs::Role("ein|eine|der|die|mein|meine|unser|unsere|jetzt ein|jetzt eine")),
    ("antworte", Needs::Manner("auf|in|nur|immer|kurz|knapp|mit|ohne|als")),
    ("toujours", ROMANCE_COMPLAINT),
    ("jamais", ROMANCE_COMPLAINT),
    ("ne jamais", Needs::Nothing),
    ("tu es", FRENCH_TALK),
    ("vous êtes", FRENCH_TALK),
    ("désormais", Needs::Nothing),
    ("à partir de maintenant", Needs::Nothing),
    ("réponds", Needs::Manner("en|toujours|uniquement|seulement|brièvement|avec|sans")),
    ("siempre", ROMANCE_COMPLAINT),
    ("nunca", ROMANCE_COMPLAINT),
    ("eres", SPANISH_TALK),
    ("a partir de ahora", Needs::Nothing),
    ("sempre", ROMANCE_COMPLAINT),
    ("a partir de agora", Needs::Nothing),
    ("você é", SPANISH_TALK),
    ("d'ora in poi", Needs::Nothing),
    ("mai", Needs::ItalianOrder),
    ("всегда", Needs::RussianOrder),
    ("никогда", Needs::RussianOrder),
    ("отныне", Needs::Nothing),
    ("你是", Needs::Begins("一|我|个|资深|高级|专业|专家|本项目|这个项目")),
    ("总是", Needs::NoComplaint),
    ("始终", Needs::NoComplaint),
    ("永远", Needs::NoComplaint),
    ("从现在", Needs::Nothing),
    ("不要再", Needs::Nothing),
    ("あなたは", Needs::NoComplaint),
    ("常に", Needs::NoComplaint),
    ("必ず", Needs::NoComplaint),
    ("今後", Needs::Nothing),
    ("これから", Needs::Nothing),
    ("항상", Needs::NoComplaint),
    ("절대", Needs::NoComplaint),
    ("앞으로", Needs::Nothing),
];

/// What people are called who are no role.
const PRAISE: &str = "genius|legend|lifesaver|star|rockstar|hero|beast|wizard|god|gem|angel|champ|best|man|one|goat|idiot|\
    moron|joke|bit|little|lot|great|genie|held|engel|schatz|beste|bester|genio|crack|sol|gênio|génie|wrong";

/// How sentences end that only say what happens, or how good somebody is.
const COMPLAINTS: &str = "崩溃|失败|报错|出错|不行|了|天才|笨蛋|落ちる|落ちます|失敗する|失敗します|になる|になります|が出る|出ます|クラッシュする|天才です|最高です|正しい|正しいです|실패해요|실패합니다|실패해|\
    나요|죽어요";

/// The first sentence, if it sets a rule or a role.
pub(super) fn standing_rule(prompt: &str) -> Option<&str> {
    let sentence = first_sentence(prompt);
    let length = sentence.chars().take(201).count();
    let least = if sentence.is_ascii() { 8 } else { 5 };
    if !(least..=200).contains(&length) || asks(sentence) {
        return None;
    }
    let lower = sentence.to_lowercase();
    let mut words = lower.as_str();
    while let Some(rest) = words_of(FILLERS).find_map(|filler| strip_word(words, filler)) {
        // `remember that …` is an opening of its own.
        if opening(words).next().is_some() {
            break;
        }
        words = rest.trim_start_matches([',', ':', '，', '-', ' ']);
    }
    opening(words).any(|(rest, needs)| needs.are_met(rest)).then_some(sentence)
}

/// The openings that a text in lower case begins with, and what follows each.
fn opening(words: &str) -> impl Iterator<Item = (&str, Needs)> {
    OPENINGS.iter().filter_map(|(opening, needs)| Some((strip_word(words, opening)?.trim_start(), *needs)))
}

impl Needs {
    fn are_met(self, rest: &str) -> bool {
        let next = first_word(rest);
        match self {
            Self::Nothing => true,
            Self::Not(words) => !next.is_empty() && !has(words, next) && !is_praise(rest),
            Self::Begins(starts) => words_of(starts).any(|start| strip_word(rest, start).is_some()),
            Self::NoComplaint => {
                let end = rest.trim_end_matches(['!', '！', '。', '…', ' ', '啊', '吧']);
                !words_of(COMPLAINTS).any(|complaint| end.ends_with(complaint))
            }
            Self::EnglishOrder => is_english_order(next),
            Self::GermanOrder => is_german_order(next, rest),
            Self::ItalianOrder => ["are", "ere", "ire", "rsi", "più"].iter().any(|end| next.ends_with(end)),
            Self::RussianOrder => is_russian_order(rest),
            Self::Consequence => {
                const SUBJECTS: &str =
                    "it|i|the|this|that|there|we|they|he|she|my|a|an|everything|nothing|something|its|it's";
                let then = rest.split_once(',').map(|(_, then)| first_word(then.trim_start())).unwrap_or_default();
                !then.is_empty() && !has(SUBJECTS, then)
            }
            Self::Statement => {
                const VERBS: &str = "is|are|must|should|need|needs|has|have|use|uses|do|does|don't|can|can't|cannot|may|will|only|never|\
                    always|want";
                rest.split_whitespace().skip(1).any(|word| has(VERBS, word))
            }
            Self::Role(starts) => words_of(starts).any(|start| strip_word(rest, start).is_some()) && !is_praise(rest),
            Self::Manner(starts) => words_of(starts).any(|start| {
                let how = if start.is_empty() { Some(rest) } else { strip_word(rest, start) };
                how.is_some_and(|how| is_manner(start, first_word(how.trim_start())))
            }),
        }
    }
}

/// The lists above are words between bars.
fn words_of(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split('|')
}

fn has(list: &'static str, word: &str) -> bool {
    words_of(list).any(|of| of == word)
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-').unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Within its first words, so that a reviewer of the best code stays a role.
fn is_praise(rest: &str) -> bool {
    rest.split_whitespace().take(3).any(|word| has(PRAISE, first_word(word)))
}

/// `crashes` and `worked` tell what happens, `pass` and `need` what to do.
fn is_english_order(next: &str) -> bool {
    const TALK: &str = "mind|again|a|an|the|been|is|was|were|has|had|seen|happy|glad|nice|good|great|fun|this|that|my|your|knew|\
        thought|gonna";
    const ORDERS: &str = "need|embed|feed|seed|proceed|focus|canvas|bias|alias";
    let happens = (next.ends_with('s') && !next.ends_with("ss")) || next.ends_with("ed");
    !next.is_empty() && !has(TALK, next) && (!happens || has(ORDERS, next))
}

fn is_german_order(next: &str, rest: &str) -> bool {
    const TALK: &str = "noch|wieder|dieser|diese|dieses|das|der|die|dasselbe|mehr|gut";
    let infinitive = |word: &str| {
        let word = first_word(word);
        word.chars().count() >= 4 && ["en", "eln", "ern"].iter().any(|end| word.ends_with(end))
    };
    !has(TALK, next) && (next == "nur" || rest.split_whitespace().any(infinitive))
}

fn is_russian_order(rest: &str) -> bool {
    const HAPPENS: &str = "ет|ит|ют|ят|ат|ется|ится|ал|ил|ло|ла|ли";
    let verb = first_word(strip_word(rest, "не").unwrap_or(rest).trim_start());
    !verb.is_empty() && !words_of(HAPPENS).any(|end| verb.ends_with(end))
}

/// `in German`, `auf Deutsch`, `with JSON`: a language or a form, not a place or a person.
fn is_manner(start: &str, next: &str) -> bool {
    const PLACES: &str =
        "the|this|that|my|your|his|her|their|our|pr|thread|slack|die|das|den|der|dem|seine|ihre|ticket|la|le";
    let of_place = matches!(start, "" | "in" | "with" | "auf" | "en" | "avec" | "mit");
    let place = next.is_empty() || has(PLACES, next) || (start == "with" && matches!(next, "a" | "an"));
    !of_place || !place
}

fn first_sentence(prompt: &str) -> &str {
    let end = prompt.char_indices().find_map(|(at, character)| {
        let next = prompt.get(at + character.len_utf8()..).and_then(|rest| rest.chars().next());
        let ends = match character {
            '.' | '!' => next.is_none_or(char::is_whitespace),
            '。' | '！' | '\n' => true,
            _ => false,
        };
        ends.then_some(at)
    });
    prompt.get(..end.unwrap_or(prompt.len())).unwrap_or_default().trim()
}
