//! The handshake: what passes, and everything that must not.

use super::*;
use crate::auth::testing::TwoHosts;
use crate::proto::frame::{Decoder, MAX_FRAME_EARLY};
use crate::proto::{Msg, PROTO_HIGH};

const K1: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const K2: &str = "aa0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn ring(text: &str) -> KeyRing {
    KeyRing::parse(text.as_bytes()).unwrap()
}
fn one() -> KeyRing {
    ring(&format!("k1 {K1}"))
}
fn from(text: &str) -> SocketAddr {
    SocketAddr::new(ip(text), 40_000)
}
fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
fn gate(ring: &KeyRing) -> Gate<'_> {
    static WAYS: std::sync::LazyLock<Ways> = std::sync::LazyLock::new(Ways::default);
    Gate { ring, hosts: &TwoHosts, host: "hostb", only_uid: None, ways: &WAYS }
}
fn with_raw<T>(bytes: &[u8], f: impl FnOnce(&Raw<'_>) -> T) -> T {
    f(&Raw::whole(bytes, MAX_FRAME_EARLY).unwrap())
}

/// A hello of mbatchd on hostb, as a client that wants exactly that reads it.
fn greet(g: &Gate<'_>, nonce: u8) -> Hello {
    let mut out = Vec::new();
    g.hello(Daemon::Mbatchd, [nonce; 32], &mut out);
    with_raw(&out, |r| read_hello(r, Daemon::Mbatchd, "hostb")).unwrap().0
}

fn granted(ring: &KeyRing, hello: &Hello) -> (Claims, SessionKey) {
    let ask = Ask {
        target: hello.target(),
        keys: hello.keys.clone(),
        eauth: String::new(),
        user_server: None,
    };
    match grant(ring, &ask, 1000, 100, "ann", "hosta") {
        Grant::Yes { claims, session } => (claims, SessionKey::new(session.0)),
        other => panic!("{other:?}"),
    }
}

fn auth_bytes(claims: Claims, key: &SessionKey) -> (Vec<u8>, Session) {
    let mut out = Vec::new();
    let s = write_auth(PROTO_HIGH, claims, key, &mut out).unwrap();
    (out, s)
}

fn admit(g: &Gate<'_>, hello: &Hello, addr: &str, bytes: &[u8]) -> Result<Peer, AuthError> {
    with_raw(bytes, |r| g.admit(&hello.target(), from(addr), r, &mut Vec::new())).map(
        |(_, p, check)| {
            assert_eq!(check, None);
            p
        },
    )
}

#[test]
fn a_user_and_a_server_prove_themselves_to_each_other() {
    let r = one();
    let g = gate(&r);
    let hello = greet(&g, 1);
    assert_eq!(hello.target(), g.target(Daemon::Mbatchd, [1; 32]));
    let (claims, key) = granted(&r, &hello);
    let (bytes, mut client) = auth_bytes(claims, &key);
    let mut answer = Vec::new();
    let (mut server, peer, _) =
        with_raw(&bytes, |raw| g.admit(&hello.target(), from("127.0.0.2"), raw, &mut answer))
            .unwrap();
    let (user, host) = ("ann".to_string(), "hosta".to_string());
    assert_eq!(peer, Peer::User { uid: 1000, gid: 100, user, host });
    with_raw(&answer, |raw| read_ok(&mut client, raw)).unwrap();
    let mut out = Vec::new();
    client.seal_msg(&Msg::Ping { n: 9 }, &mut out).unwrap();
    let mut dec = Decoder::new(100);
    dec.push(&out);
    let raw = dec.take().unwrap().unwrap();
    assert!(matches!(server.open_msg(&raw), Ok(Msg::Ping { n: 9 })));
}

#[test]
fn a_daemon_signs_for_itself() {
    let r = one();
    let g = gate(&r);
    let hello = greet(&g, 1);
    let (claims, key) = sign_as_daemon(&r, &hello, Daemon::Sbatchd, "hosta", 5).unwrap();
    let (bytes, _) = auth_bytes(claims, &key);
    let want = Peer::Daemon { daemon: Daemon::Sbatchd, host: "hosta".into() };
    assert_eq!(admit(&g, &hello, "127.0.0.2", &bytes), Ok(want));
}

#[test]
fn every_forged_claim_is_refused() {
    let r = one();
    let g = gate(&r);
    let hello = greet(&g, 1);
    let (good, key) = granted(&r, &hello);
    let bad = Err(AuthError::Frame(FrameError::BadMac));
    type Forge = fn(&mut Claims);
    let forge: [(&str, Forge); 7] = [
        ("uid", |c| c.uid = 0),
        ("gid", |c| c.gid = 0),
        ("user", |c| c.user = "root".into()),
        ("host", |c| c.host = "hostb".into()),
        ("kind", |c| c.who = Who::Daemon(Daemon::Mbatchd)),
        ("shifted", |c| (c.user, c.host) = ("an".into(), "nhosta".into())),
        ("other", |c| c.user = "Ann".into()),
    ];
    for (what, f) in forge {
        let mut claims = good.clone();
        f(&mut claims);
        let (bytes, _) = auth_bytes(claims, &key);
        assert_eq!(admit(&g, &hello, "127.0.0.2", &bytes), bad, "{what}");
    }
    for name in ["", "a\nb", "a b", &"x".repeat(257)] {
        let mut claims = good.clone();
        claims.user = name.into();
        let (bytes, _) = auth_bytes(claims, &key);
        assert_eq!(admit(&g, &hello, "127.0.0.2", &bytes), Err(AuthError::BadName));
    }
}

#[test]
fn a_credential_is_good_for_one_connection_of_one_server() {
    let r = one();
    let g = gate(&r);
    let hello = greet(&g, 1);
    let (claims, key) = granted(&r, &hello);
    let (bytes, _) = auth_bytes(claims, &key);
    let bad = Err(AuthError::Frame(FrameError::BadMac));
    assert!(admit(&g, &hello, "127.0.0.2", &bytes).is_ok());
    let again = greet(&g, 2);
    assert_eq!(admit(&g, &again, "127.0.0.2", &bytes), bad, "replayed");
    for change in [
        |h: &mut Hello| h.daemon = Daemon::Sbatchd,
        |h: &mut Hello| h.host = "hosta".into(),
        |h: &mut Hello| h.hi += 1,
        |h: &mut Hello| h.lo = 0,
    ] {
        let mut other = hello.clone();
        change(&mut other);
        assert_eq!(admit(&g, &other, "127.0.0.2", &bytes), bad);
    }
    for at in 0..bytes.len() {
        let mut m = bytes.clone();
        m[at] ^= 4;
        let got = Raw::whole(&m, MAX_FRAME_EARLY)
            .map_err(AuthError::from)
            .and_then(|raw| g.admit(&hello.target(), from("127.0.0.2"), &raw, &mut Vec::new()));
        assert!(got.is_err(), "byte {at}");
    }
}

#[test]
fn addresses_are_held_against_names() {
    let r = one();
    let g = gate(&r);
    let hello = greet(&g, 1);
    let (claims, key) = granted(&r, &hello);
    let (bytes, _) = auth_bytes(claims, &key);
    let wrong = admit(&g, &hello, "127.0.0.3", &bytes).unwrap_err();
    assert_eq!(wrong, AuthError::WrongHost { addr: ip("127.0.0.3"), host: "hosta".into() });
    assert_eq!(wrong.code(), 34);
    for unknown in ["127.0.0.9", "10.1.1.1"] {
        let e = admit(&g, &hello, unknown, &bytes).unwrap_err();
        assert_eq!(e, AuthError::NotOurHost { addr: ip(unknown) });
    }
    assert!(g.known_addr(ip("10.1.1.1")).is_err() && g.known_addr(ip("127.0.0.2")).is_ok());
    // An unnamed loopback address is this very host, and no other.
    let (claims, key) = sign_as_daemon(&r, &hello, Daemon::Lim, "hostb", 5).unwrap();
    let (bytes, _) = auth_bytes(claims, &key);
    assert!(admit(&g, &hello, "127.0.0.1", &bytes).is_ok());
}

#[test]
fn keys_rotate_and_foreign_keys_are_refused() {
    let both = ring(&format!("k2 {K2}\nk1 {K1}"));
    let old = one();
    let hello = greet(&gate(&both), 1);
    let (claims, key) = granted(&old, &hello);
    assert_eq!(claims.key, "k1");
    let (bytes, _) = auth_bytes(claims, &key);
    assert!(admit(&gate(&both), &hello, "127.0.0.2", &bytes).is_ok());
    let new = ring(&format!("k2 {K2}"));
    let unknown = || AuthError::UnknownKey { place: String::new() };
    assert_eq!(admit(&gate(&new), &hello, "127.0.0.2", &bytes), Err(unknown()));
    assert!(sign_as_daemon(&new, &greet(&gate(&old), 1), Daemon::Lim, "hosta", 1).is_err());
    // A ring with the same id and another key.
    let foreign = ring(&format!("k1 {K2}"));
    let hello = greet(&gate(&foreign), 1);
    let (claims, key) = granted(&old, &hello);
    let (bytes, _) = auth_bytes(claims, &key);
    let bad = Err(AuthError::Frame(FrameError::BadMac));
    assert_eq!(admit(&gate(&foreign), &hello, "127.0.0.2", &bytes), bad);
}

#[test]
fn a_personal_cluster_has_one_uid() {
    let r = one();
    let g = Gate { only_uid: Some(7), ..gate(&r) };
    let hello = greet(&g, 1);
    let (claims, key) = granted(&r, &hello);
    let (bytes, _) = auth_bytes(claims, &key);
    let got = admit(&g, &hello, "127.0.0.2", &bytes).unwrap_err();
    assert_eq!((got.code(), got), (17, AuthError::ForeignUid { uid: 1000 }));
}

#[test]
fn the_client_believes_only_the_server_it_called() {
    let r = one();
    let g = gate(&r);
    let mut out = Vec::new();
    let hello = g.hello(Daemon::Mbatchd, [1; 32], &mut out);
    for (d, h) in [(Daemon::Sbatchd, "hostb"), (Daemon::Mbatchd, "hosta")] {
        let got = with_raw(&out, |raw| read_hello(raw, d, h)).unwrap_err();
        assert!(matches!(got, AuthError::WrongServer { .. }));
    }
    // A server without the key cannot answer.
    let (claims, key) = granted(&r, &hello);
    let (_, mut client) = auth_bytes(claims, &key);
    let mut fake = Session::signed(PROTO_HIGH, &SessionKey::new([9; 32]), Side::Server);
    let mut answer = Vec::new();
    fake.seal(Kind::AuthOk, &AuthOk {}, &mut answer).unwrap();
    let got = with_raw(&answer, |raw| read_ok(&mut client, raw));
    assert_eq!(got, Err(AuthError::Frame(FrameError::BadMac)));
    let mut no = Vec::new();
    deny(&AuthError::UnknownKey { place: String::new() }, &mut no);
    let got = with_raw(&no, |raw| read_ok(&mut client, raw));
    assert_eq!(got, Err(AuthError::Denied { code: 17 }));
}

#[test]
fn versions_meet_or_part_with_words() {
    assert_eq!(agree(1, 9), Ok(PROTO_HIGH));
    assert_eq!(agree(PROTO_LOW, PROTO_HIGH), Ok(PROTO_HIGH));
    let e = agree(PROTO_HIGH + 1, PROTO_HIGH + 3).unwrap_err();
    assert!(e.to_string().starts_with("peer speaks protocol versions"));
    assert!(agree(0, 0).is_err());
}

#[test]
fn first_frames_are_pinned() {
    let r = one();
    let mut out = Vec::new();
    gate(&r).hello(Daemon::Mbatchd, [1; 32], &mut out);
    let body = |bytes: &[u8]| with_raw(bytes, |raw| String::from_utf8_lossy(raw.body).into_owned());
    let nonce = "01".repeat(32);
    let plain = format!(
        "{{\"lo\":1,\"hi\":1,\"keys\":[\"k1\"],\"nonce\":\"{nonce}\",\"daemon\":\"mbatchd\",\"host\":\"hostb\"}}"
    );
    // A site with the built-in credential alone says what older clients know.
    assert_eq!(body(&out), plain);
    let mut lsf = crate::conf::LsfConf::default();
    lsf.set("LSF_AUTH", "eauth ident");
    out.clear();
    let ways = Ways::of(&lsf);
    Gate { ways: &ways, ..gate(&r) }.hello(Daemon::Mbatchd, [1; 32], &mut out);
    assert_eq!(body(&out), plain.replace("\"hostb\"}", "\"hostb\",\"ways\":\"key ident\"}"));
    let hello = greet(&gate(&r), 1);
    let (claims, key) = granted(&r, &hello);
    let (bytes, _) = auth_bytes(claims.clone(), &key);
    let said = "\"key\":\"k1\",\"who\":\"user\",\"uid\":1000,\"gid\":100,\"user\":\"ann\",\"host\":\"hosta\"";
    assert_eq!(body(&bytes), format!("{{\"version\":1,\"claims\":{{{said}}}}}"));
    let (way, data) = ("eauth".to_string(), "x".into());
    out.clear();
    let mut auth = Auth { way, data, ..Auth::signed(1, claims) };
    write_auth_of(auth.clone(), &key, &mut out).unwrap();
    let want = format!("{{\"version\":1,\"claims\":{{{said}}},\"way\":\"eauth\",\"data\":\"x\"}}");
    assert_eq!(body(&out), want);
    auth.aux = eauth_aux::pack(b"token");
    out.clear();
    write_auth_of(auth, &key, &mut out).unwrap();
    assert_eq!(body(&out), want.replace("\"x\"}", "\"x\",\"aux\":\"dG9rZW4=\"}"));
}

#[test]
fn auxiliary_data_is_bounded_and_signed_with_the_proof() {
    let r = one();
    let mut ways = Ways::default();
    ways.enable(Way::Eauth);
    let g = Gate { ways: &ways, ..gate(&r) };
    let hello = greet(&g, 1);
    // Signed by authd, and by nobody.
    for open in [false, true] {
        let admit = |aux: String, spoil: bool| {
            let (mut claims, key) = granted(&r, &hello);
            claims.key.truncate(if open { 0 } else { claims.key.len() });
            let (way, data) = ("eauth".into(), "x".into());
            let auth = Auth { version: 1, claims, way, data, aux };
            let key = if open { open_key(&auth, &hello.target()).unwrap() } else { key };
            let mut out = Vec::new();
            write_auth_of(auth, &key, &mut out).unwrap();
            let at = out.len() - 6;
            out[at] ^= u8::from(spoil);
            let raw = Raw::whole(&out, 1 << 20).unwrap();
            let done = g.admit(&hello.target(), from("127.0.0.2"), &raw, &mut Vec::new());
            done.map(|(_, _, check)| check.unwrap().aux.len())
        };
        let most = vec![b'a'; eauth_aux::MAX_AUX];
        assert_eq!(admit(String::new(), false), Ok(0), "an older client");
        assert_eq!(admit(eauth_aux::pack(&most), false), Ok(most.len()));
        assert_eq!(admit(eauth_aux::pack(b"token!"), false), Ok(6));
        assert_eq!(
            admit(eauth_aux::pack(b"token!"), true),
            Err(AuthError::Frame(FrameError::BadMac))
        );
        let why = "auxiliary data of more than 64 KB".to_string();
        let long = [&most[..], b"a"].concat();
        let refused = Err(AuthError::Unproved { way: Way::Eauth, why });
        assert_eq!(admit(eauth_aux::pack(&long), false), refused);
    }
}

#[test]
fn session_keys_are_pinned() {
    let claims = Claims {
        key: "k1".into(),
        who: Who::User,
        uid: 1000,
        gid: 100,
        user: "ann".into(),
        host: "hosta".into(),
    };
    let target = Target {
        daemon: Daemon::Mbatchd,
        host: "hostb".into(),
        nonce: Hex32([1; 32]),
        lo: 1,
        hi: 1,
        ways: String::new(),
    };
    let hex = |key: SessionKey| crate::auth::ring::hex(key.expose());
    assert_eq!(hex(session_key(&one(), &claims, &target).unwrap()), PINNED);
    let more = Target { ways: "key ident".into(), ..target.clone() };
    assert_eq!(hex(session_key(&one(), &claims, &more).unwrap()), PINNED_WAYS);
    let mut auth = Auth::signed(1, Claims { key: String::new(), ..claims });
    (auth.way, auth.data) = ("eauth".into(), "MUNGE:x:".into());
    let more = Target { ways: "eauth".into(), ..target };
    assert_eq!(hex(open_key(&auth, &more).unwrap()), PINNED_OPEN);
}

/// HMAC-SHA256 computed apart from this code.
const PINNED: &str = "4fb76b6c07da8453753bf9b26794c8f4439867564e6ed32c481229171906b1e4";
const PINNED_WAYS: &str = "22dba5427a36fc47cb81f0f08e1eb4aa3f222990a5bb5aac557ead5bf571250c";
const PINNED_OPEN: &str = "a9cdf5a781571a7bf17e9487d780bd63b4bb9b4a3f4f2b5255b393113271fea4";
