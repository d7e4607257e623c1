//! The program `steadfast-fleet`.

fn main() -> std::process::ExitCode {
    steadfast_fleet::cli::main()
}
