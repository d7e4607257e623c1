//! Small changes of known inputs, the same for the same seed: what drives the targets where libFuzzer is missing.

/// Pieces that parsers care about.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "\n",
    "\r",
    "\t",
    " ",
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "-0.0",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0.1",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "é",
    "目",
    "\u{202e}",
    "\u{feff}",
    "\u{1b}[31m",
    "../",
    "/",
    "- ",
    "#",
    "---\n",
    "&a ",
    "*a",
    "!!",
    "|",
    ">",
    "%",
    "${",
    "$",
    "=",
    "==",
    "(",
    ")",
    "not ",
    " and ",
    "'",
    "<",
    "</",
    "&",
    "=\n",
    "\n===\n",
    "[redacted]",
    "token=",
    "https://",
];

/// A generator of numbers (`xorshift64*`).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or_default()
    }
}

/// One of the inputs with a few changes, never longer than `most` bytes.
pub fn mutated(inputs: &[Vec<u8>], random: &mut Random, most: usize) -> Vec<u8> {
    let pick = |random: &mut Random| inputs.get(random.below(inputs.len())).cloned().unwrap_or_default();
    let mut bytes = pick(random);
    for _ in 0..=random.below(4) {
        let from = random.below(bytes.len() + 1);
        let to = from + random.below((bytes.len() - from).min(64) + 1);
        match random.below(8) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..to)),
            2 => {
                let piece = bytes.get(from..to).unwrap_or_default().to_vec();
                let at = random.below(bytes.len() + 1);
                bytes.splice(at..at, piece);
            }
            3 => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte ^= 1 << random.below(8);
                }
            }
            4 => {
                let other = pick(random);
                let piece = other.get(random.below(other.len())..).unwrap_or_default();
                bytes.splice(from..to, piece.iter().copied());
            }
            5 => swap_lines(&mut bytes, random),
            _ => {
                let token = TOKENS.get(random.below(TOKENS.len())).copied().unwrap_or_default();
                let to = if random.below(2) == 0 { from } else { to };
                bytes.splice(from..to, token.bytes());
            }
        }
    }
    bytes.truncate(most);
    bytes
}

fn swap_lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (random.below(lines.len()), random.below(lines.len()));
    if !lines.is_empty() {
        lines.swap(one, other);
        *bytes = lines.concat();
    }
}
