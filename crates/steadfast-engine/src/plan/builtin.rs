//! The built-in loop types and pipelines, from `loops/` and `pipelines/` at the root of the repository, where they also
//! serve as examples.

use steadfast_model::run::RunKind;

pub(super) struct BuiltIn {
    pub(super) kind: RunKind,
    pub(super) name: &'static str,
    /// Its file, below `loops/` or `pipelines/`.
    pub(super) path: &'static str,
    pub(super) yaml: &'static str,
    /// Prompts of a loop type by their path in its folder.
    pub(super) prompts: &'static [(&'static str, &'static str)],
}

macro_rules! loop_type {
    ($name:literal, $prompt:literal) => {
        BuiltIn {
            kind: RunKind::Loop,
            name: $name,
            path: concat!($name, "/loop.yaml"),
            yaml: include_str!(concat!("../../loops/", $name, "/loop.yaml")),
            prompts: &[($prompt, include_str!(concat!("../../loops/", $name, "/", $prompt)))],
        }
    };
}

macro_rules! pipeline {
    ($name:literal) => {
        BuiltIn {
            kind: RunKind::Pipeline,
            name: $name,
            path: concat!($name, ".yaml"),
            yaml: include_str!(concat!("../../pipelines/", $name, ".yaml")),
            prompts: &[],
        }
    };
}

pub(super) const BUILT_IN: [BuiltIn; 10] = [
    loop_type!("work", "prompt.md"),
    loop_type!("improve-plan", "prompt.md"),
    loop_type!("refine-beads", "prompts/bead-refiner.md"),
    loop_type!("idea-wizard", "prompt.md"),
    pipeline!("quick-refine"),
    pipeline!("full-refine"),
    pipeline!("deep-refine"),
    pipeline!("code-review"),
    pipeline!("ideate"),
    pipeline!("research-implement"),
];
