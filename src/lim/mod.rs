//! The load information manager as a pure state machine.
