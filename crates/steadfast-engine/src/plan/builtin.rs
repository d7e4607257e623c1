//! The loop types and pipelines that come with the program. They lie in `loops/` and `pipelines/` at the root of the
//! repository, where they serve as examples too.

/// A built-in loop type.
pub(super) struct BuiltInLoop {
    pub(super) name: &'static str,
    pub(super) yaml: &'static str,
    /// Prompts by their path in the folder.
    pub(super) prompts: &'static [(&'static str, &'static str)],
}

macro_rules! root {
    ($path:literal) => {
        include_str!(concat!("../../../../", $path))
    };
}

pub(super) const LOOPS: &[BuiltInLoop] = &[
    BuiltInLoop {
        name: "work",
        yaml: root!("loops/work/loop.yaml"),
        prompts: &[("prompt.md", root!("loops/work/prompt.md"))],
    },
    BuiltInLoop {
        name: "improve-plan",
        yaml: root!("loops/improve-plan/loop.yaml"),
        prompts: &[("prompt.md", root!("loops/improve-plan/prompt.md"))],
    },
    BuiltInLoop {
        name: "refine-beads",
        yaml: root!("loops/refine-beads/loop.yaml"),
        prompts: &[("prompts/bead-refiner.md", root!("loops/refine-beads/prompts/bead-refiner.md"))],
    },
    BuiltInLoop {
        name: "idea-wizard",
        yaml: root!("loops/idea-wizard/loop.yaml"),
        prompts: &[("prompt.md", root!("loops/idea-wizard/prompt.md"))],
    },
];

pub(super) const PIPELINES: &[(&str, &str)] = &[
    ("quick-refine", root!("pipelines/quick-refine.yaml")),
    ("full-refine", root!("pipelines/full-refine.yaml")),
    ("deep-refine", root!("pipelines/deep-refine.yaml")),
    ("code-review", root!("pipelines/code-review.yaml")),
    ("ideate", root!("pipelines/ideate.yaml")),
    ("research-implement", root!("pipelines/research-implement.yaml")),
];
