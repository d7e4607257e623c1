//! The built-in loop types and pipelines, from `loops/` and `pipelines/` at the root of the repository, where they also
//! serve as examples.

/// A built-in loop type.
pub(super) struct BuiltInLoop {
    pub(super) name: &'static str,
    pub(super) yaml: &'static str,
    /// Prompts by their path in the folder.
    pub(super) prompts: &'static [(&'static str, &'static str)],
}

macro_rules! loops {
    ($($name:literal: $prompt:literal,)*) => {
        &[$(BuiltInLoop {
            name: $name,
            yaml: include_str!(concat!("../../../../loops/", $name, "/loop.yaml")),
            prompts: &[($prompt, include_str!(concat!("../../../../loops/", $name, "/", $prompt)))],
        },)*]
    };
}

macro_rules! pipelines {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../../pipelines/", $name, ".yaml"))),)*]
    };
}

pub(super) const LOOPS: &[BuiltInLoop] = loops! {
    "work": "prompt.md",
    "improve-plan": "prompt.md",
    "refine-beads": "prompts/bead-refiner.md",
    "idea-wizard": "prompt.md",
};

pub(super) const PIPELINES: &[(&str, &str)] = pipelines! {
    "quick-refine",
    "full-refine",
    "deep-refine",
    "code-review",
    "ideate",
    "research-implement",
};
