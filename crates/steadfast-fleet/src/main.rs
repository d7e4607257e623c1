//! The program `steadfast-fleet`.

fn main() -> std::process::ExitCode {
    steadfast_fleet::commands::main()
}
