//! Readers of the classic configuration files: one lexer, one parser per file.

/// The configuration of a cluster as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterConf {}

/// A diagnostic of a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct Diag {}
