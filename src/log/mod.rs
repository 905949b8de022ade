//! The event log: classic text records, checksums, spool, accounting.
