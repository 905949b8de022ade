//! sbatchd and its launcher; the launcher machine and the operating system.
//! Owned by the launcher's implementation.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LaunchMsg {}

#[derive(Debug)]
pub enum OsInput {}

#[derive(Debug)]
pub enum OsEffect {}
