//! Calls that begin and end what other modules keep something for. They are above all of those, which know nothing of each other's ends.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`contexts`] | how contexts are made and end |
//! | [`captures`] | how stream captures begin and end |

pub mod captures;
pub mod contexts;
