//! The text of our own comments.

use grilse_dev::pcap::{CommentError, Grilse1, Member};
use grilse_wire::{Csum, Gso, GsoType};
use proptest::prelude::*;

fn parse(comments: &[&str]) -> Result<Option<Grilse1>, CommentError> {
    Grilse1::parse(comments.iter().map(|comment| comment.as_bytes()))
}

fn members(count: u32) -> Vec<Member> {
    let member = |n: u32| Member {
        frame: 40 + u64::from(n),
        interface: 0,
        ticks: 1_796_000_000_000_000 + u64::from(n / 4) * 12,
        orig_len: if n + 1 == count { 566 } else { 1514 },
        comments: 0,
    };
    (0..count).map(member).collect()
}

fn bulk(count: u32) -> Grilse1 {
    Grilse1 {
        gso: Gso { kind: GsoType::TCPV4, size: 1448, segs: count as u16 },
        csum: Csum::Partial { start: 34, offset: 16 },
        inner_network: 0,
        vlan_restored: false,
        members: members(count),
    }
}

#[test]
fn the_example_of_the_document() {
    let text = "grilse1 gso=1:1448:9 csum=partial:34:16 in=40+1*8 \
                t=1796000000000000+0*3+12+0*3+12 len=1514+0*7-948";
    assert_eq!(bulk(9).encode(), [text]);
    assert_eq!(parse(&[text]), Ok(Some(bulk(9))));
    let document = include_str!("../../../../docs/pcapng.md");
    assert!(document.contains(text), "docs/pcapng.md shows another text");
}

#[test]
fn many_members_take_further_comments() {
    let all = bulk(2000);
    let texts = all.encode();
    assert_eq!(texts.len(), 3);
    assert!(texts[1].starts_with("grilse1 more in=840+1*799 "), "{}", texts[1]);
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    assert_eq!(parse(&texts), Ok(Some(all)));
    let swapped = [texts[0], texts[2], texts[1]];
    assert_eq!(parse(&swapped), Err(CommentError::NotCanonical));
}

#[test]
fn the_worst_members_fit_an_option() {
    let member = |n: u64| {
        let high = n.is_multiple_of(2);
        let (wide, narrow) = if high { (u64::MAX - n, u32::MAX - n as u32) } else { (n, n as u32) };
        Member { frame: wide, interface: narrow, ticks: wide, orig_len: narrow, comments: narrow }
    };
    let worst = Grilse1 { members: (0..65_535).map(member).collect(), ..bulk(1) };
    let texts = worst.encode();
    assert!(texts.iter().all(|text| text.len() <= usize::from(u16::MAX)));
    let read = Grilse1::parse(texts.iter().map(String::as_bytes)).expect("our own text");
    assert!(read == Some(worst));
}

#[test]
fn foreign_comments_are_passed_over() {
    assert_eq!(parse(&[]), Ok(None));
    assert_eq!(parse(&["a note", "grilse1", "grilse10 x", " grilse1 x"]), Ok(None));
    let plain = Grilse1 { members: members(1), ..Grilse1::default() };
    let text = &plain.encode()[0];
    assert_eq!(parse(&["in front", text, "behind"]), Ok(Some(plain)));
    assert!(Grilse1::owns(text.as_bytes()) && !Grilse1::owns(b"grilse1"));
}

/// A capture may be coalesced twice, and people write comments wherever they like.
#[test]
fn the_last_of_two_sets_is_split_off() {
    let [old, new] = [900, 1700].map(|count| bulk(count).encode());
    let (old, new): (Vec<_>, Vec<_>) =
        (old.iter().map(String::as_bytes).collect(), new.iter().map(String::as_bytes).collect());
    let comments =
        [&[b"a".as_slice()], &old[..], &[b"b"], &new[..2], &[b"c"], &new[2..], &[b"d"]].concat();
    let (ours, foreign) = Grilse1::split(comments);
    assert_eq!(ours, new);
    assert_eq!(foreign, [&[b"a".as_slice()], &old[..], &[b"b", b"c", b"d"]].concat());
    let (ours, foreign) = Grilse1::split(foreign);
    assert_eq!((ours, foreign.len()), (old, 4));
    let (ours, foreign) = Grilse1::split([b"grilse1 more in=1".as_slice(), b"a"]);
    assert_eq!((ours.len(), foreign.len()), (1, 1), "without a beginning it is still ours");
}

#[test]
fn nothing_else_is_accepted() {
    let field = |comment, field| Err(CommentError::Field { comment, field });
    let one = "grilse1 csum=none in=1 t=2 len=3";
    assert!(matches!(parse(&[one]), Ok(Some(_))));
    assert_eq!(parse(&["grilse1 "]), field(0, 0));
    assert_eq!(parse(&["grilse1 more in=1 t=2 len=3"]), field(0, 0));
    assert_eq!(parse(&["grilse1 csum=none  in=1 t=2 len=3"]), field(0, 1));
    assert_eq!(parse(&["grilse1 csum=none new=1"]), field(0, 1));
    assert_eq!(parse(&["grilse1 csum=valid:4"]), field(0, 0));
    assert_eq!(parse(&["grilse1 gso=1:2 csum=none"]), field(0, 0));
    assert_eq!(parse(&["grilse1 csum=none in=1-2 t=1 len=1"]), field(0, 1));
    assert_eq!(parse(&["grilse1 csum=none in=18446744073709551615+1"]), field(0, 1));
    assert_eq!(parse(&["grilse1 csum=none in=1+"]), field(0, 1));
    assert_eq!(parse(&[one, "grilse1 more in=1 t=x"]), field(1, 2));
    assert_eq!(
        parse(&["grilse1 csum=none in=1+1 t=2 len=3"]),
        Err(CommentError::Uneven { comment: 0 })
    );
    assert_eq!(
        parse(&["grilse1 csum=none in=1 t=2 len=4294967296"]),
        Err(CommentError::OutOfRange { comment: 0, row: 0 })
    );
    for run in ["65535", "18446744073709551615"] {
        let text = format!("grilse1 csum=none in=1+0*{run} t=2 len=3");
        assert_eq!(parse(&[&text]), Err(CommentError::TooManyMembers));
    }
    for text in [
        "grilse1 in=1 t=2 len=3",
        "grilse1 csum=none",
        "grilse1 csum=none:0 in=1 t=2 len=3",
        "grilse1 gso=0:0:0 csum=none in=1 t=2 len=3",
        "grilse1 csum=none csum=none in=1 t=2 len=3",
        "grilse1 csum=none t=2 in=1 len=3",
        "grilse1 csum=none in=1 len=3",
        "grilse1 csum=none in=01 t=2 len=3",
        "grilse1 csum=none in=1 if=0 t=2 len=3",
        "grilse1 csum=none in=1-0 t=2+0 len=3+0",
        "grilse1 csum=none in=1+1*1 t=2+0 len=3+0",
        "grilse1 csum=none in=1+1+1 t=2+0*2 len=3+0*2",
    ] {
        let expected = if text == "grilse1 csum=none" {
            Ok(Some(Grilse1::default()))
        } else {
            Err(CommentError::NotCanonical)
        };
        assert_eq!(parse(&[text]), expected, "{text}");
    }
}

fn any_csum() -> impl Strategy<Value = Csum> {
    prop_oneof![
        Just(Csum::None),
        (0u8..4).prop_map(|level| Csum::Unnecessary { level }),
        any::<u32>().prop_map(|sum| Csum::Complete { sum }),
        any::<(u16, u16)>().prop_map(|(start, offset)| Csum::Partial { start, offset }),
    ]
}

/// Numbers that are often equal, near, or anything.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1500u64..1504, any::<u64>()]
}

fn any_member() -> impl Strategy<Value = Member> {
    (number(), number(), number(), number(), number()).prop_map(|(frame, a, ticks, b, c)| Member {
        frame,
        interface: a as u32,
        ticks,
        orig_len: b as u32,
        comments: c as u32,
    })
}

proptest! {
    #[test]
    fn round_trip(
        kind: u32, size: u16, segs: u16,
        csum in any_csum(),
        inner_network in prop_oneof![Just(0u16), any::<u16>()],
        vlan_restored: bool,
        members in proptest::collection::vec(any_member(), 0..40),
    ) {
        let gso = Gso { kind: GsoType(kind), size, segs };
        let value = Grilse1 { gso, csum, inner_network, vlan_restored, members };
        let texts = value.encode();
        prop_assert_eq!(Grilse1::parse(texts.iter().map(String::as_bytes)), Ok(Some(value)));
    }

    /// What is accepted is what would be written.
    #[test]
    fn accepted_text_is_written_text(tail in "(gso=|csum=none|in=|t=|len=|more|[0-9]|\\+|-|\\*|:| ){0,30}") {
        let text = format!("grilse1 {tail}");
        if let Ok(read) = parse(&[&text]) {
            prop_assert_eq!(read.map(|value| value.encode()), Some(vec![text]));
        }
    }

    #[test]
    fn one_change_is_another_value_or_an_error(at: prop::sample::Index, byte: u8) {
        let text = bulk(9).encode().remove(0);
        let mut changed = text.clone().into_bytes();
        let at = at.index(changed.len());
        changed[at] = byte;
        if changed != text.as_bytes() {
            prop_assert_ne!(Grilse1::parse([&changed[..]]), Ok(Some(bulk(9))));
        }
    }
}
