//! Invalid messages cause errors that name the message, the field, the problem and the expected
//! value. Decoding never allocates more memory than the size of the input justifies.

use filbert_wire::{
    CorrelationId, Direction, Limits, Message, MessageId, Problem, Request as _, Split, Splitter, WireError,
    codec::{Field as _, Reader},
    encode_fragmented,
    frame::{FRAME_HEADER_BYTES, FrameKind, Frames, Writer, flags, set_flags},
    sql_page::{SqlColumn, SqlPage},
    table::{client, map},
};

/// Builds a message from the flags and contents of its frames. A first frame with the header and
/// `fixed` precedes them.
fn message(id: MessageId, fixed: &[u8], frames: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    let header_bytes = if id.0 & 0xff == 1 { 9 } else { 12 };
    let header = [&id.0.to_le_bytes()[..], &vec![0; header_bytes], fixed].concat();
    writer.frame(flags::UNFRAGMENTED, &header);
    for (flags, content) in frames {
        writer.frame(*flags, content);
    }
    writer.finish();
    out
}

fn put_error(frames: &[(u16, &[u8])]) -> String {
    let bytes = message(map::put::ID, &[0; 16], frames);
    Message::parse(&bytes).unwrap().decode::<map::put::Request<'_>>().unwrap_err().to_string()
}

#[test]
fn a_null_where_a_value_is_required() {
    let error = put_error(&[(0, b"m"), (flags::NULL, b""), (0, b"v")]);
    assert_eq!(error, "Map.put: field \"key\": null where a value is required");
}

#[test]
fn a_list_where_a_value_is_required() {
    let error = put_error(&[(0, b"m"), (flags::BEGIN, b""), (0, b"v"), (flags::END, b"")]);
    assert_eq!(error, "Map.put: field \"key\": the begin of a structure where a value is expected");
}

#[test]
fn a_message_that_ends_too_early() {
    assert_eq!(put_error(&[(0, b"m"), (0, b"k")]), "Map.put: field \"value\": missing");
    let bytes = message(map::put::ID, &[0; 15], &[(0, b"m"), (0, b"k"), (0, b"v")]);
    let error = Message::parse(&bytes).unwrap().decode::<map::put::Request<'_>>().unwrap_err();
    assert_eq!(error.to_string(), "Map.put: field \"ttl\": missing");
}

#[test]
fn text_that_is_not_utf_8() {
    assert_eq!(put_error(&[(0, b"ab\xff"), (0, b"k"), (0, b"v")]), "Map.put: field \"name\": not UTF-8 from byte 2 on");
}

#[test]
fn a_fault_deep_inside_is_found_by_its_path() {
    let begin: (u16, &[u8]) = (flags::BEGIN, b"");
    // The list of members, a member, its fixed fields, its address, the address's fixed fields, and
    // a null host.
    let frames = [begin, begin, (0, &[0; 18]), begin, (0, &[0; 4]), (flags::NULL, b"")];
    let bytes = message(client::add_cluster_view_listener::ID.part(2), &[0; 4], &frames);
    let parsed = Message::parse(&bytes).unwrap();
    let error = parsed.decode::<client::add_cluster_view_listener::MembersViewEvent<'_>>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "Client.addClusterViewListener MembersViewEvent: field \"memberInfos.address.host\": null where a value is required"
    );
}

#[test]
fn a_packed_list_that_does_not_divide() {
    let bytes = message(map::fetch_keys::ID, &[0; 4], &[(0, b"m"), (0, &[0; 9])]);
    let error = Message::parse(&bytes).unwrap().decode::<map::fetch_keys::Request<'_>>().unwrap_err();
    let problem = Problem::BrokenList { bytes: 9, item_bytes: 8 };
    assert_eq!(error, WireError::Field { message: map::fetch_keys::ID, field: "iterationPointers".into(), problem });
}

#[test]
fn a_structure_without_end_and_keys_without_values() {
    let id = client::add_cluster_view_listener::ID.part(3);
    type Event = client::add_cluster_view_listener::PartitionsViewEvent;
    let begin: (u16, &[u8]) = (flags::BEGIN, b"");
    let bytes = message(id, &[0; 4], &[begin, (0, &[])]);
    let error = Message::parse(&bytes).unwrap().decode::<Event>().unwrap_err();
    assert!(error.to_string().contains("its end frame is missing"), "{error}");
    let bytes = message(id, &[0; 4], &[begin, (flags::END, b""), (0, &[0; 17])]);
    let error = Message::parse(&bytes).unwrap().decode::<Event>().unwrap_err();
    assert!(error.to_string().contains("1 keys beside 0 values"), "{error}");
}

#[test]
fn another_message_than_the_requested_one() {
    let bytes = message(map::get::ID, &[0; 8], &[(0, b"m"), (0, b"k")]);
    let error = Message::parse(&bytes).unwrap().decode::<map::put::Request<'_>>().unwrap_err();
    assert_eq!(error, WireError::WrongMessage { expected: map::put::ID, found: map::get::ID });
    assert_eq!(error.to_string(), "Map.get where Map.put is expected");
}

#[test]
fn a_first_frame_without_room_for_the_header() {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes).frame(flags::UNFRAGMENTED | flags::FINAL, &[0; 12]);
    let expected = Direction::Response.header_bytes();
    assert_eq!(Message::parse(&bytes).unwrap_err(), WireError::HeaderTooShort { bytes: 12, expected });
    // Long enough for a response, but not for a request.
    let mut bytes = Vec::new();
    Writer::new(&mut bytes)
        .frame(flags::UNFRAGMENTED | flags::FINAL, &[&map::get::ID.0.to_le_bytes()[..], &[0; 9]].concat());
    let parsed = Message::parse(&bytes).unwrap();
    assert_eq!(parsed.partition_id(), -1);
    let error = parsed.decode::<map::get::Request<'_>>().unwrap_err();
    assert_eq!(error, WireError::HeaderTooShort { bytes: 13, expected: 16 });
}

#[test]
fn bytes_that_are_not_one_whole_message() {
    let whole = get_request();
    for end in 0..whole.len() {
        assert_eq!(Message::parse(&whole[..end]).unwrap_err(), WireError::Truncated { bytes: end });
    }
    let twice = [&whole[..], &whole[..]].concat();
    assert_eq!(Message::parse(&twice).unwrap_err(), WireError::TrailingBytes { bytes: whole.len() });
}

fn get_request() -> Vec<u8> {
    let mut out = Vec::new();
    map::get::Request { name: "m", key: b"a key of twenty byte", thread_id: 1 }.encode(CorrelationId(1), 3, &mut out);
    out
}

#[test]
fn lengths_that_cannot_be() {
    for (length, error) in [
        (5, WireError::FrameTooShort { length: 5 }),
        (-1, WireError::FrameTooShort { length: -1 }),
        (i32::MAX, WireError::MessageTooLong { bytes: i32::MAX as u64, limit: 1 << 30 }),
    ] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0, 0xc0]);
        assert_eq!(Splitter::new(Limits::default()).split(&bytes).unwrap_err(), error);
    }
}

#[test]
fn a_message_over_the_limit_is_refused_before_it_is_there() {
    let limits = Limits { message_bytes_max: 100, ..Limits::default() };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.frame(flags::UNFRAGMENTED, &[0; 50]);
    writer.frame(flags::FINAL, &[0; 50]);
    let error = Splitter::new(limits).split(&bytes[..70]).unwrap_err();
    assert_eq!(error, WireError::MessageTooLong { bytes: 112, limit: 100 });
}

#[test]
fn the_splitter_waits_for_the_last_byte() {
    let whole = get_request();
    let mut splitter = Splitter::new(Limits::default());
    for end in 0..whole.len() {
        assert_eq!(splitter.split(&whole[..end]), Ok(None), "after {end} bytes");
    }
    assert_eq!(splitter.split(&whole), Ok(Some(Split::Whole(whole.len()))));
}

#[test]
fn the_splitter_looks_at_each_frame_once() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    (0..1_000).for_each(|_| writer.frame(flags::UNFRAGMENTED, b"some content"));
    writer.finish();
    let mut splitter = Splitter::new(Limits::default());
    let nearly = bytes.len() - 1;
    assert_eq!(splitter.split(&bytes[..nearly]), Ok(None));
    // The splitter would reject these lengths if it read the frames again.
    let last_frame = bytes.len() - FRAME_HEADER_BYTES - 12;
    bytes[FRAME_HEADER_BYTES + 12..last_frame].fill(0);
    assert_eq!(splitter.split(&bytes), Ok(Some(Split::Whole(bytes.len()))));
}

/// Returns the fragments of a get request with the fragmentation id `id`.
fn fragments(id: i64) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    encode_fragmented(&get_request(), id, 50, &mut bytes).unwrap();
    let mut fragments = vec![Vec::new()];
    for frame in Frames::new(&bytes) {
        let last = fragments.last_mut().unwrap();
        Writer::new(last).frame(frame.flags, frame.content);
        if frame.flags & flags::FINAL != 0 {
            fragments.push(Vec::new());
        }
    }
    fragments.pop();
    assert_eq!(fragments.concat(), bytes);
    assert!(fragments.len() >= 2 && fragments.iter().all(|fragment| fragment.len() <= 50));
    fragments
}

#[test]
fn fragments_of_several_messages_may_alternate() {
    let mut splitter = Splitter::new(Limits::default());
    let (one, two) = (fragments(1), fragments(2));
    for (one, two) in one.iter().zip(&two).take(one.len() - 1) {
        assert_eq!(splitter.split(one), Ok(Some(Split::Fragment(one.len()))));
        assert_eq!(splitter.split(two), Ok(Some(Split::Fragment(two.len()))));
    }
    for last in [two.last().unwrap(), one.last().unwrap()] {
        assert_eq!(splitter.split(last), Ok(Some(Split::Assembled(last.len(), get_request()))));
    }
    assert_eq!(splitter.kept_bytes(), 0);
}

#[test]
fn fragments_that_break_the_rules() {
    let parts = fragments(9);
    let mut splitter = Splitter::new(Limits::default());
    assert_eq!(splitter.split(&parts[1]).unwrap_err(), WireError::FragmentWithoutBegin { id: 9 });
    splitter.split(&parts[0]).unwrap();
    assert_eq!(splitter.split(&parts[0]).unwrap_err(), WireError::FragmentBeginsTwice { id: 9 });

    let mut without_id = Vec::new();
    Writer::new(&mut without_id).frame(flags::BEGIN_FRAGMENT | flags::FINAL, &[0; 7]);
    assert_eq!(splitter.split(&without_id).unwrap_err(), WireError::FragmentWithoutId { bytes: 7 });

    assert_eq!(Message::parse(&parts[0]).unwrap_err(), WireError::UnexpectedFragment);
    let too_small = encode_fragmented(&get_request(), 1, 30, &mut Vec::new()).unwrap_err();
    assert!(matches!(too_small, WireError::FragmentTooSmall { fragment_bytes: 30, expected: 44 }), "{too_small}");
}

#[test]
fn fragments_are_kept_under_the_limits() {
    let mut splitter = Splitter::new(Limits { fragmented_messages_max: 2, ..Limits::default() });
    for id in 0..2 {
        splitter.split(&fragments(id)[0]).unwrap();
    }
    let error = splitter.split(&fragments(2)[0]).unwrap_err();
    assert_eq!(error, WireError::TooManyFragmentedMessages { limit: 2 });

    let first = &fragments(0)[0];
    let mut splitter = Splitter::new(Limits { message_bytes_max: first.len(), ..Limits::default() });
    splitter.split(first).unwrap();
    let error = splitter.split(&fragments(1)[0]).unwrap_err();
    assert!(matches!(error, WireError::MessageTooLong { .. }), "{error}");
}

#[test]
fn deep_nesting_is_skipped_without_recursion() {
    let begin: (u16, &[u8]) = (flags::BEGIN, b"");
    let end: (u16, &[u8]) = (flags::END, b"");
    let mut frames = vec![(0, &b"m"[..]), begin, (0, &[0; 4]), (flags::NULL, b""), begin, end, (flags::NULL, b"")];
    frames.push((flags::NULL, b""));
    frames.extend(vec![begin; 100_000]);
    frames.extend(vec![end; 100_000]);
    frames.push(end);
    let bytes = message(map::add_index::ID, &[], &frames);
    let parsed = Message::parse(&bytes).unwrap();
    assert_eq!(parsed.decode::<map::add_index::Request<'_>>().unwrap().name, "m");
}

/// Decodes a page with one column of `column_type`, encoded in the frame `column`.
fn page(column_type: i32, column: &[u8]) -> Result<SqlPage<'static>, Problem> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.begin();
    writer.frame(0, &[1]);
    writer.frame(0, &column_type.to_le_bytes());
    writer.frame(0, column);
    writer.end();
    let frames = Frames::new(bytes.leak());
    SqlPage::read(&mut Reader::new(&[], frames)).map_err(|fault| fault.problem())
}

#[test]
fn counts_of_an_sql_page_allocate_nothing_that_is_not_there() {
    let count = i32::MAX.to_le_bytes();
    let huge = |layout: u8, rest: &[u8]| [&[layout][..], &count, rest].concat();
    let nulls = page(SqlColumn::INTEGER, &huge(1, &[])).unwrap();
    assert_eq!(nulls.columns, [SqlColumn::Nulls { column_type: SqlColumn::INTEGER, rows: i32::MAX as u32 }]);
    assert_eq!(page(SqlColumn::INTEGER, &huge(2, &[0; 9])), Err(Problem::Missing));
    assert_eq!(page(SqlColumn::INTEGER, &huge(3, &[0; 9])), Err(Problem::Missing));
    assert!(matches!(page(SqlColumn::BIGINT, &huge(7, &[])), Err(Problem::BrokenColumn(_))));
    assert!(matches!(page(SqlColumn::NULL, &(-1_i32).to_le_bytes()), Err(Problem::BrokenColumn(_))));
    assert_eq!(page(99, &[]), Err(Problem::UnknownColumnType(99)));
}

#[test]
fn frames_know_what_they_are() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.begin();
    writer.null();
    writer.frame(0, b"x");
    writer.end();
    writer.finish();
    let kinds: Vec<FrameKind> = Frames::new(&bytes).map(|frame| frame.kind()).collect();
    assert_eq!(kinds, [FrameKind::Begin, FrameKind::Null, FrameKind::Value, FrameKind::End]);
    assert_eq!(Frames::new(&bytes[..bytes.len() - 1]).count(), 3, "half a frame is none");
    set_flags(&mut bytes, flags::BACKUP_AWARE);
    assert_eq!(Frames::new(&bytes).next().unwrap().flags, flags::BEGIN | flags::BACKUP_AWARE);
    assert_eq!(bytes.len(), 4 * FRAME_HEADER_BYTES + 1);
}
