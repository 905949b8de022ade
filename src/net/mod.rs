//! The event loop and framed connections.
