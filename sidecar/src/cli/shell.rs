//! `phos-ft completions` and `phos-ft man`: what shells and `man` know of the command line, made from its grammar.

use std::io::{self, Write as _};
use std::path::Path;

use clap_complete::Shell;

use super::{args, exit, fail};

pub(super) fn completions(shell: Shell) -> u8 {
    let mut command = args::command();
    let name = command.get_name().to_owned();
    // To memory first: the generator panics where nobody reads it.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    match io::stdout().write_all(&script) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            fail(format_args!("cannot write the script: {e}"), exit::FAILED)
        }
        _ => exit::OK,
    }
}

pub(super) fn manual(directory: &Path) -> u8 {
    match clap_mangen::generate_to(args::command(), directory) {
        Ok(()) => exit::OK,
        Err(e) => fail(
            format_args!(
                "cannot write manual pages to {}: {e}; name a directory that exists and that you may write to",
                directory.display()
            ),
            exit::CANNOT_CREATE,
        ),
    }
}
