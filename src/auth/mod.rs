//! Credentials: the cluster key, authd's signatures, per-connection session keys (design: one credential, one connection).
