//! placeholder
use crate::{cli::DemoArgs, failure::Failure, output::Done};
pub(crate) fn run(_arguments: &DemoArgs) -> Result<Done, Failure> {
    Ok(Done::default())
}
