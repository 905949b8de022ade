//! The attacks of the threat model. All of rows and of eauth were seen to fail with the defence
//! named here taken out.
//!
//! | class | tests | the defence whose removal turns them red |
//! |---|---|---|
//! | static or default key | cluster::keys | `KeyRing::load` refuses a key that is missing, of another owner or mode |
//! | eauth: replay, other host, other name | eauth::*, auth::eauth | each check of `Judge::judge`, each field of `Said::mac`; `believed` of the applet compares user and address; `authd` judges for daemons alone |
//! | eauth: auxiliary data | eauth::a_token, auth::eauth_aux, auth::shake, cluster::users::a_site_s_eauth_hands | `EauthAux::take` and `beside::unpack` bound it, `Session::open` believes it with the proof, `EauthAux::done` empties it and makes a line of the words |
//! | replay, extension | attacks::malformed_messages_after, service::a_credential_for, auth::shake | sequence number and MAC of `Session`; target and nonce in the session key |
//! | time of datagrams | datagrams, net::dgram | `Seal::fresh` bounds how far ahead a datagram may be |
//! | a daemon's port | ports | the launcher keeps the socket (`daemon::ports`), `sock::Held` shares its port with nobody |
//! | downgrade of method | attacks::malformed_bytes_before, methods | `Gate` takes no unsigned frame and no method that lsf.conf does not enable |
//! | privileged port, reverse DNS | service::who_may_not, methods | `HostLookup::host_of_addr` on the peer's own address |
//! | lengths, decoding | attacks::malformed_*, proto::frame, `make fuzz` | caps before allocation in `Decoder` |
//! | symlink, TOCTOU | rows::links_planted, rows::a_name_exchanged, cluster::users::root_believes | `Store::own`, opening as the user (`become_user` before `prepare::prepare`), `guard::safe` |
//! | files in shared directories | shared_directories::*, sys::files, bpeek | `files::append`, `files::regular_of` |
//! | output path | cluster::outputs | `task::output` |
//! | traversal | rows::names_with_slashes_and_dots_reach_no_other_file | `plan::expand` and `Store::new` put digits alone into names; a queue that is asked for is looked up (`check_select`) |
//! | environment, PATH | rows::an_environment, cluster::outputs::mail_goes_out | the launcher's `env_clear` of a starter; /bin/sh is named by its path. Clearing the environment of the mail program is a second fence: its test is red only where the first is gone too |
//! | set*id return ignored | rows::a_job_whose_identity | `starter::become_user` reads back what it set |
//! | control across users | cluster::users::jobs_can_be, batch::tests::permissions, exec::launcher | the table `permissions::allowed` and its checks; `Launcher::opened` |
//! | joining another's job | interactive, res::joined_tests | `Ends::attach` compares the uid of a starter with that of the bsub; `Arrivals::keep` bounds what one user leaves |
//! | tasks in another's parallel job | parallel::another_user_has, auth::user_server, res::of_job_tests | `Res::not_admitted` compares the uid of the caller with that of sbatchd's membership; `user_server::grant` gives keys of a pam to its user alone |
//! | processes taken into another's job | adopt, res::foreign_tests, exec::launcher_adopt_tests | `Res::not_admitted`; `TaskControl::adoptable` compares start and user of the process and asks for its job; `TaskTracker::is_near` keeps the batch system out |
//! | a node that orders another's sbatchd | parallel::lost_node_has | `Sbatchd::opened` takes orders of mbatchd's candidates, and questions of its own res, alone |
//! | a lost compute node | reports::a_node_with, batch::tests::reporters | `Mbatchd::standing` asks whose first host an attempt has, `need_blob` too |
//! | a collector of another host | collectors, nlb::tests::reports | `NlbServer::read_report` asks the connection for the host; its bounds of a report |
//! | role escalation | rows::a_queue_administrator, cluster::users::root_believes | `Mbatchd::roles` asks by queue; `guard::admin` |
//! | root believes the administrator | administrator::* | `RootFiles`, `delegate::open_log`, `guard::directories`, `guard::admin`, `files::follow`, `files::unsafe_program`, `Boot::readable` |
//! | injection | rows::texts_of_users | `put_str` of the log, `one_line` of daemon logs, `cli::columns` |
//! | secrets leak | rows::key_bytes_are_in_no_file_and_no_view_of_a_process | no daemon writes key bytes anywhere; `no_core_file`; the key file's mode |
//! | exhaustion | attacks::*, commit::*, cluster::damage::a_full_disk | the limits of `net::limits` |
//! | a master that comes late | fence::*, log::tests::fence, the simulator | `check_owner_now` between sync and reply; `fence::renew` gives the next run files of its own |
//! | a name that many jobs bear | names, batch::tests::named | `State::bind` keeps it a name (`NAMED_LISTED`), `MAX_NAMED` |
//! | exhaustion by one request | bounds::*, messages::*, host_messages::* | `caps::check` and its like; units of `batch::lifecycle::works`; `Pages` of the heap; `NOTES_MAX` of the launcher |
//! | many requirements | classes, batch::tests::classes | `sched::walk` looks at `LOOKS_PER_USER` classes of a user in a pass, at none twice while nothing changes |
//! | state loss | rows::a_missing_log, cluster::damage, log::tests | `Mbatchd::task_state` leaves jobs alone that the log does not know |

mod administrator;
mod adopt;
mod attacks;
mod authd;
mod bounds;
mod classes;
mod collectors;
mod commit;
mod datagrams;
mod eauth;
mod fence;
mod host_messages;
mod interactive;
mod messages;
mod methods;
mod names;
mod parallel;
mod ports;
mod reports;
#[path = "../cluster/rig.rs"]
mod rig;
mod rows;
mod script;
mod service;
mod shared_directories;
#[path = "../cluster/site.rs"]
#[allow(dead_code)]
mod site;
mod surroundings;
mod swap;
mod world;
