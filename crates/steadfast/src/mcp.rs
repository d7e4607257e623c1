//! placeholder
pub(crate) fn serve(_paths: &steadfast_core::paths::Paths) -> anyhow::Result<()> {
    Ok(())
}
