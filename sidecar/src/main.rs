//! The `phos-ft` program; see the library.

fn main() -> std::process::ExitCode {
    phos_ft::cli::main()
}
