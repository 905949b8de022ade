//! Operating system calls; raw.rs alone may hold unsafe.

pub mod load;
