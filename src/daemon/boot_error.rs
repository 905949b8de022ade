//! Why a daemon does not start.

/// Why a daemon does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootError(pub String);

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BootError {}
