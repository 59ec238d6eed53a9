//! What the records of a job's logs say of who had it and what was left behind: the same in both tiers.

pub(super) mod branch;
pub(super) mod holder;
