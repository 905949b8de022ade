//! Readers of the classic configuration files: one lexer, one parser per file.
