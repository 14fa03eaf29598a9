//! What the tasks of this program and those of the workbench have in common: steps, commands of cargo, and what the
//! tests need from outside.

#![forbid(unsafe_code)]

pub mod install;
pub mod steps;

mod boot;
