//! Files that the job has open for writing: what they were at the checkpoint, and putting them back.
//!
//! CRIU re-opens regular files by path and refuses when one has another length than at the dump. A job that continued after the
//! checkpoint has appended to its logs, so a restore without this step would fail, and if it did not, the log would show steps
//! twice.
//!
//! # Consistency
//!
//! [`capture`] runs while CRIU holds the tree frozen: lengths, contents and memory are of one instant.
//!
//! # Crash
//!
//! [`put_back`] first saves what it is about to cut off, then changes the file. Run again after a crash in
//! between, it does what is left to do (the saved copy may then exist twice).
//!
//! | at restore the file is | content in the image | done |
//! |---|---|---|
//! | as it was | either | nothing |
//! | longer, same beginning | either | tail saved to `<path>.phos-cut-<n>`, truncated |
//! | different in what the image knows | yes | saved to `<path>.phos-cut-<n>`, rewritten |
//! | shorter | yes | rewritten |
//! | missing | yes | written, parent directories made |
//! | shorter or missing | no | [`FilesError::NoContent`] |
//!
//! What the job has open or mapped without writing to it (data sets, libraries, its program) is the user's: the image has the
//! paths with length and mode, because CRIU takes nothing else back, and [`check`] says of all of them at once what this place
//! lacks, before anything is fetched or changed. But no other machine has what lies in temporary and cache directories
//! ([`temporary`](crate::files::temporary)): of such files the image has the contents, the smallest first, up to
//! [`MOST_OF_OTHERS`](capture::MOST_OF_OTHERS) in all, and [`bring`] writes those that are missing. A file that is there is the
//! user's as well: it is refused if its mode has changed or if it has become shorter.
//!
//! A file that has become longer was appended to, and is opened as it is ([`of_any_length`]): nothing that the job has read of it
//! changed. Programs and libraries are an exception: longer ones are other builds.
//!
//! # Rules
//!
//! The agent may be root in directories that are the job's: files are got at by [`way`](crate::user::way), what is there is changed only where it
//! belongs to whom it belonged at the checkpoint, and what is made is made by [`make`].
//!
//! | module | its reason to change |
//! |---|---|
//! | [`capture`] | which files the image describes, and which it carries |
//! | [`check`] | what a place may lack or have otherwise |
//! | [`put_back`] | how a file becomes what it was |
//! | [`linked`] | files used by names that were removed while they have others |
//! | [`places`] | directories and named pipes around all that |
//! | [`temporary`] | which directories no other machine has |
//! | [`make`] | how what is missing is made, whole or not at all |
//! | [`errors`] | what is said when it cannot be done |

mod capture;
mod check;
mod errors;
pub mod linked;
mod make;
pub mod places;
mod put_back;
pub mod temporary;
#[cfg(test)]
mod tests;

pub use capture::{Carry, capture, copy_into, needed};
pub use check::{check, of_any_length};
pub use errors::FilesError;
pub use put_back::{Action, bring, create_directory, create_parents, put_back};
