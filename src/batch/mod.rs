//! mbatchd as a pure, event-sourced state machine.
