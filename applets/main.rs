//! The one binary: dispatches on the name it was called by.
fn main() {}
