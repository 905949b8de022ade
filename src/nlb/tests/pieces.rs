//! Answers about many objects: they are written down piece by piece, as the caller reads them.

use super::*;
use crate::proto::nlb::PIECE;

/// The texts that one input alone has sent to the user; the next piece is not asked for.
fn sent(rig: &mut Rig, input: Input) -> Vec<(String, bool)> {
    let now = Now { mono_us: rig.now, wall_us: 999_999_900_000_000 + rig.now as i64 };
    let mut out = Vec::new();
    rig.server.step(now, input, &mut out);
    let text = |effect: Effect| match effect {
        Effect::Send { conn: USER, msg: Msg::Nlb(NlbMsg::Text { text, more }) } => {
            Some((text, more))
        }
        Effect::Send { conn: USER, msg } => panic!("{msg:?}"),
        _ => None,
    };
    out.into_iter().filter_map(text).collect()
}

fn all(names: &[&str]) -> Input {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let dump = NlbMsg::Dump(NlbObjects { names, ..NlbObjects::default() });
    Input::Msg { conn: USER, msg: Msg::Nlb(dump) }
}

fn name(n: usize) -> String {
    format!("host{n:05}")
}

/// The names of the objects of a text, in their order.
fn names(text: &str) -> Vec<String> {
    let heads = text.lines().filter_map(|line| line.strip_prefix("object NLB ("));
    heads.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn object_that_goes_while_all_are_read_is_not_in_the_rest_and_the_others_are_once() {
    let mut rig = Rig::new();
    let objects: String =
        (0..9_000).map(|n| format!("object NLB ({}) {{ NLB_CLOCK = {n}; }}\n", name(n))).collect();
    assert!(rig.put(&objects).taken);
    let first = sent(&mut rig, all(&[]));
    let [(text, true)] = &first[..] else { panic!("{first:?}") };
    assert_eq!(text.len(), PIECE);
    // the rest of the last object of the piece comes before any other
    let gone = NlbObjects { object_type: "NLB".into(), names: vec![name(8_999), name(0)] };
    assert!(rig.change(NlbMsg::Delete(gone)).taken);
    let mut text = text.clone();
    let mut more = true;
    let mut pieces = 1;
    while more {
        let next = sent(&mut rig, Input::Drained { conn: USER });
        let [(piece, goes_on)] = &next[..] else { panic!("{next:?}") };
        assert!(piece.len() <= PIECE);
        text.push_str(piece);
        (more, pieces) = (*goes_on, pieces + 1);
    }
    assert!(pieces >= 3, "{pieces}");
    let found: Vec<String> = names(&text).into_iter().filter(|n| n.starts_with("host0")).collect();
    assert_eq!(found, (0..8_999).map(name).collect::<Vec<_>>());
    assert_eq!(sent(&mut rig, Input::Drained { conn: USER }), []);
}

#[test]
fn objects_that_are_named_come_once_in_the_order_of_their_names() {
    let mut rig = Rig::new();
    assert!(rig.put("object NLB (b) { } object NLB (Cool) { } object NLB (a) { }").taken);
    let text = |rig: &mut Rig, names: &[&str]| {
        let pieces = sent(rig, all(names));
        assert!(pieces.iter().all(|(_, more)| !more), "{pieces:?}");
        pieces.into_iter().map(|(text, _)| text).collect::<String>()
    };
    assert_eq!(names(&text(&mut rig, &["b", "A", "cool.site", "a", "COOL"])), ["a", "b", "cool"]);
    assert_eq!(names(&text(&mut rig, &["b"])), ["b"]);
    let none =
        NlbMsg::Dump(NlbObjects { names: vec!["a".into(), "x".into()], ..NlbObjects::default() });
    let Some(Msg::Refused(refusal)) = rig.say(USER, none).pop() else { panic!() };
    assert_eq!(refusal.text, "no object <x>");
}
