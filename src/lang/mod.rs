//! The small languages: resource requirements, dependencies, job names, windows, limits.
