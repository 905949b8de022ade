//! The attacks of the threat model, over real loopback sockets. Each test was seen to fail with its
//! defence taken out.

mod attacks;
mod authd;
mod commit;
mod eauth;
mod methods;
mod service;
mod world;
