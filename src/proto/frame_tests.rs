//! Frames: every malformed kind has its name, and the bytes are pinned.

use super::*;
use crate::proto::{Msg, PROTO_HIGH};

fn key(n: u8) -> SessionKey {
    SessionKey::new([n; 32])
}

fn pair() -> (Session, Session) {
    let v = PROTO_HIGH;
    (Session::signed(v, &key(7), Side::Client), Session::signed(v, &key(7), Side::Server))
}

fn ping(session: &mut Session, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    session.seal_msg(&Msg::Ping { n }, &mut out).unwrap();
    out
}

/// The messages that the server reads from these bytes, as one stream.
fn hear(server: &mut Session, bytes: &[u8]) -> Result<Vec<u64>, FrameError> {
    let mut dec = Decoder::new(MAX_FRAME);
    let mut got = Vec::new();
    dec.push(bytes);
    while let Some(raw) = dec.take()? {
        match server.open_msg(&raw)? {
            Msg::Ping { n } => got.push(n),
            other => panic!("{other:?}"),
        }
    }
    dec.finish().map(|()| got)
}

#[test]
fn a_frame_is_these_bytes() {
    let (mut client, _) = pair();
    let hex: String = ping(&mut client, 5).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        hex,
        concat!(
            "4c534657",
            "0001",
            "05",
            "00",
            "00000010",
            "0000000000000000",
            "5b34eb21f0acd47f6276885e099cdb42",
            "7b2250696e67223a7b226e223a357d7d"
        )
    );
}

#[test]
fn frames_arrive_in_any_pieces() {
    let (mut client, mut server) = pair();
    let mut bytes = Vec::new();
    for n in 0..5 {
        bytes.extend(ping(&mut client, n));
    }
    for piece in [1, 2, 7, 36, 37, 1000] {
        let mut dec = Decoder::new(64);
        let mut got = 0;
        let mut s = Session::signed(PROTO_HIGH, &key(7), Side::Server);
        for part in bytes.chunks(piece) {
            dec.push(part);
            while let Some(raw) = dec.take().unwrap() {
                assert!(matches!(s.open_msg(&raw), Ok(Msg::Ping { n }) if n == got));
                got += 1;
            }
        }
        assert_eq!((got, dec.finish()), (5, Ok(())));
    }
    assert_eq!(hear(&mut server, &bytes), Ok(vec![0, 1, 2, 3, 4]));
}

#[test]
fn every_malformed_kind_has_its_name() {
    let good = |n| {
        let (mut c, s) = pair();
        (ping(&mut c, n), s)
    };
    let (b, mut s) = good(1);
    for cut in 1..b.len() {
        let (_, mut s) = good(1);
        assert_eq!(hear(&mut s, &b[..cut]), Err(FrameError::Short), "{cut}");
    }
    let mut m = b.clone();
    m[1] = b'X';
    assert_eq!(hear(&mut s, &m), Err(FrameError::Magic));
    assert_eq!(hear(&mut s, b"GET / HTTP/1.0\r\n\r\n"), Err(FrameError::Magic));
    let mut m = b.clone();
    m[6] = 99;
    assert_eq!(hear(&mut s, &m), Err(FrameError::Kind(99)));
    m[6] = Kind::Local as u8;
    assert_eq!(hear(&mut s, &m), Err(FrameError::Unexpected(Kind::Local)));
    let mut m = b.clone();
    m[5] = 9;
    assert_eq!(hear(&mut s, &m), Err(FrameError::Version { got: 9, want: PROTO_HIGH }));
    let mut m = b.clone();
    m[20..36].fill(0);
    assert_eq!(hear(&mut s, &m), Err(FrameError::Unsigned));
    for at in [12, 19, 20, 35, 36, b.len() - 1] {
        let mut m = b.clone();
        m[at] ^= 1;
        assert_eq!(hear(&mut s, &m), Err(FrameError::BadMac), "{at}");
    }
    assert_eq!(hear(&mut s, &b), Ok(vec![1]), "nothing was counted by the refused ones");
    assert_eq!(hear(&mut s, &b), Err(FrameError::Replayed { got: 0, want: 1 }));
}

#[test]
fn lengths_are_held_against_the_cap_at_once() {
    for len in [u32::MAX, 1 << 31, (1 << 31) - 1, MAX_FRAME as u32 + 1] {
        let mut head = [0u8; 12];
        head[..4].copy_from_slice(&MAGIC);
        (head[5], head[6]) = (1, Kind::Msg as u8);
        head[8..].copy_from_slice(&len.to_be_bytes());
        let mut dec = Decoder::new(MAX_FRAME);
        dec.push(&head);
        let want = FrameError::Length { len: u64::from(len), cap: MAX_FRAME };
        assert_eq!(dec.take().map(|_| ()), Err(want));
        assert!(dec.reserved() < 1024);
    }
    // A length within the cap reserves nothing before its bytes are there.
    let mut head = [0u8; HEADER];
    head[..4].copy_from_slice(&MAGIC);
    (head[5], head[6]) = (1, Kind::Msg as u8);
    head[8..12].copy_from_slice(&(MAX_FRAME as u32).to_be_bytes());
    let mut dec = Decoder::new(MAX_FRAME);
    dec.push(&head);
    assert!(dec.take().unwrap().is_none());
    assert!(dec.reserved() < 1024);
}

#[test]
fn a_large_frame_leaves_no_large_buffer() {
    let (mut c, mut s) = pair();
    let mut bytes = Vec::new();
    let text = "x".repeat(1 << 20);
    let refusal = crate::proto::Refusal::text(1, text);
    c.seal_msg(&Msg::Refused(refusal), &mut bytes).unwrap();
    let mut dec = Decoder::new(MAX_FRAME);
    dec.push(&bytes);
    let raw = dec.take().unwrap().unwrap();
    assert!(matches!(s.open_msg(&raw), Ok(Msg::Refused(_))));
    dec.relax();
    assert_eq!(dec.reserved(), 0);
}

/// A correctly signed frame with this body.
fn signed_body(body: &str) -> Result<Vec<u64>, FrameError> {
    let mac = MacKey::new(key(7).expose());
    let mut out = Vec::new();
    let raw = serde_json::value::RawValue::from_string(body.to_string());
    let head = FrameHead { version: PROTO_HIGH, kind: Kind::Msg, seq: 0, cap: MAX_FRAME };
    match raw {
        Ok(raw) => write_frame(&mut out, head, Some((&mac, Direction::ToServer)), &raw).unwrap(),
        Err(_) => {
            // The text is not JSON: the frame is built by hand.
            out = vec![0; HEADER];
            out[..4].copy_from_slice(&MAGIC);
            (out[5], out[6]) = (PROTO_HIGH as u8, Kind::Msg as u8);
            out[8..12].copy_from_slice(&(body.len() as u32).to_be_bytes());
            let tag = mac.over(&out[..20], Direction::ToServer as u8, body.as_bytes());
            out[20..36].copy_from_slice(&tag.finalize().into_bytes()[..16]);
            out.extend_from_slice(body.as_bytes());
        }
    }
    hear(&mut pair().1, &out)
}

#[test]
fn bodies_that_are_no_message() {
    assert_eq!(signed_body(r#"{"Ping":{"n":3}}"#), Ok(vec![3]));
    for bad in ["", "{", "[]", "{\"Ping\":{\"n\":-1}}", "{\"Nosuch\":1}", "\u{7}\u{1b}[2J", "nul"] {
        assert!(matches!(signed_body(bad), Err(FrameError::NotJson(_))), "{bad:?}");
    }
    for open in ["[", "{\"Ping\":"] {
        let deep = format!("{}{}", "{\"Client\":{\"ParamRows\":{\"values\":", open.repeat(100_000));
        let got = signed_body(&deep);
        assert!(matches!(got, Err(FrameError::TooDeep | FrameError::NotJson(_))), "{got:?}");
    }
    #[derive(serde::Deserialize, Debug)]
    struct Nest(#[allow(dead_code)] Vec<Nest>);
    let deep = "[".repeat(10_000);
    let raw =
        Raw { version: 1, kind: Kind::Msg, seq: 0, covered: &[], mac: &[], body: deep.as_bytes() };
    assert_eq!(raw.parse::<Nest>().map(|_| ()), Err(FrameError::TooDeep));
}

#[test]
fn a_frame_of_one_direction_is_refused_in_the_other() {
    let (mut client, _) = pair();
    let mut other = Session::signed(PROTO_HIGH, &key(7), Side::Client);
    let bytes = ping(&mut client, 1);
    let mut dec = Decoder::new(MAX_FRAME);
    dec.push(&bytes);
    let raw = dec.take().unwrap().unwrap();
    assert_eq!(other.open_msg(&raw).map(|_| ()), Err(FrameError::BadMac));
    let mut foreign = Session::signed(PROTO_HIGH, &key(8), Side::Server);
    assert_eq!(foreign.open_msg(&raw).map(|_| ()), Err(FrameError::BadMac));
}

#[test]
fn output_over_the_cap_is_refused_and_leaves_nothing() {
    let mut out = vec![1, 2, 3];
    let head = FrameHead::plain(Kind::Hello, 1);
    let long = "x".repeat(MAX_FRAME_EARLY);
    let got = write_frame(&mut out, head, None, &long);
    assert!(matches!(got, Err(FrameError::Length { .. })));
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn keys_are_never_printed() {
    let k = key(0xab);
    let text = format!("{k:?} {:?} {:?}", MacKey::new(k.expose()), pair().0);
    assert!(!text.contains("ab") && !text.contains("171"), "{text}");
}

/// Messages of a newer peer that this version does not know.
#[test]
fn future_kinds_of_frames_are_passed_over_or_named() {
    let (k, side) = (key(7), Side::Server);
    let hear = |body: &serde_json::Value| {
        let mut out = Vec::new();
        Session::signed(PROTO_HIGH, &k, Side::Client).seal(Kind::Msg, body, &mut out).unwrap();
        let raw = Raw::whole(&out, MAX_FRAME).unwrap();
        Session::signed(PROTO_HIGH, &k, side).open_msg(&raw).map_err(|e| e.to_string())
    };
    let known = hear(&serde_json::json!({"Lim": {"Subscribe": {"loads": true, "later": [1]}}}));
    assert!(known.is_ok(), "{known:?}");
    let new = hear(&serde_json::json!({"Lim": {"Later": {"n": 1}}})).unwrap_err();
    assert!(new.starts_with("body is not a message: unknown variant `Later`"), "{new}");
}

#[test]
fn a_stream_frame_that_is_forged_replayed_or_oversized_is_refused() {
    use crate::proto::res::Data;
    let sealed = |client: &mut Session, bytes: Vec<u8>| {
        let mut out = Vec::new();
        client.seal_msg(&Msg::Data(Data { port: 1, bytes }), &mut out).map(|()| out)
    };
    let opened = |server: &mut Session, bytes: &[u8], cap: usize| {
        let mut dec = Decoder::new(cap);
        dec.push(bytes);
        let raw = dec.take()?.ok_or(FrameError::Short)?;
        server.open_msg(&raw)
    };
    let (mut client, mut server) = pair();
    let binary: Vec<u8> = (0..=255).collect();
    let good = sealed(&mut client, binary.clone()).unwrap();
    let got = opened(&mut server, &good, MAX_FRAME);
    assert!(matches!(got, Ok(Msg::Data(Data { port: 1, bytes })) if bytes == binary));
    let again = opened(&mut server, &good, MAX_FRAME).unwrap_err();
    assert_eq!(again, FrameError::Replayed { got: 0, want: 1 });
    // each byte counts: of the port, of the data, of the header
    let next = sealed(&mut client, binary).unwrap();
    for at in [HEADER, HEADER + 1, next.len() - 1, 12, 25] {
        let mut bad = next.clone();
        bad[at] ^= 1;
        assert!(opened(&mut server, &bad, MAX_FRAME).is_err(), "byte {at}");
    }
    // the same bytes as another kind, and unsigned
    let mut bad = next.clone();
    bad[6] = Kind::Msg as u8;
    assert_eq!(opened(&mut server, &bad, MAX_FRAME).unwrap_err(), FrameError::BadMac);
    let mut bad = next.clone();
    bad[20..HEADER].fill(0);
    assert_eq!(opened(&mut server, &bad, MAX_FRAME).unwrap_err(), FrameError::Unsigned);
    let local = opened(&mut Session::local(), &next, MAX_FRAME).unwrap_err();
    assert_eq!(local, FrameError::Unexpected(Kind::Stream));
    assert!(matches!(opened(&mut server, &next, 100), Err(FrameError::Length { .. })));
    assert!(opened(&mut server, &next, MAX_FRAME).is_ok());
    assert!(sealed(&mut client, vec![0; MAX_FRAME]).is_err());
}
