//! Forms as clients send them, cut anywhere, and read beside multer.

use proptest::prelude::*;

use super::{Form, FormScanner};
use crate::openai::BodyKind;
use crate::rejection::Rejection;

fn scanner(boundary: &str) -> FormScanner {
    match BodyKind::of(Some(&format!("multipart/form-data; boundary=\"{boundary}\""))) {
        Ok(BodyKind::Form(boundary)) => FormScanner::new(boundary),
        other => panic!("{other:?}"),
    }
}

fn scan_cut(boundary: &str, body: &[u8], size: usize) -> Result<Form, Rejection> {
    let mut scanner = scanner(boundary);
    for chunk in body.chunks(size.max(1)) {
        scanner.push(chunk)?;
    }
    scanner.finish()
}

/// The form, which must come out the same at every cut.
fn scan(body: impl AsRef<[u8]>) -> Result<Form, Rejection> {
    let body = body.as_ref();
    let whole = scan_cut("XB", body, body.len());
    for size in 1..40 {
        assert_eq!(scan_cut("XB", body, size), whole, "in pieces of {size}");
    }
    whole
}

fn field(name: &str, value: &str) -> String {
    format!("--XB\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn file(content: &[u8]) -> Vec<u8> {
    let head = "--XB\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n";
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn body(parts: &[&[u8]]) -> Vec<u8> {
    [parts.concat(), b"--XB--\r\n".to_vec()].concat()
}

fn model_of(body: &[u8]) -> String {
    let model = scan(body).expect("a form").model.expect("named");
    for span in &model.spans {
        assert_eq!(&body[span.clone()], model.name.as_bytes());
    }
    model.name
}

#[test]
fn multi_01_the_model_is_found_before_behind_and_between_files() {
    let (model, file) = (field("model", "whisper-1"), file(&[0, 13, 10, 45, 45, 88, 255]));
    for parts in [
        vec![model.as_bytes(), &file],
        vec![&file, model.as_bytes()],
        vec![&file, model.as_bytes(), &file],
    ] {
        assert_eq!(model_of(&body(&parts)), "whisper-1");
    }
    assert_eq!(scan(body(&[&file])).expect("a form").model, None);
}

#[test]
fn the_model_is_known_as_soon_as_its_part_has_ended() {
    let mut scanner = scanner("XB");
    scanner.push(field("model", "m").as_bytes()).expect("fine");
    assert_eq!(scanner.model(), None, "more of the name may follow");
    scanner.push(b"--XB\r\n").expect("fine");
    assert_eq!(scanner.model(), Some("m"));
}

#[test]
fn all_is_said_once_the_model_is_known_and_no_field_that_matters_can_follow_soon() {
    let said_all = |bytes: &[&[u8]]| {
        let mut scanner = scanner("XB");
        for bytes in bytes {
            scanner.push(bytes).expect("fine");
        }
        scanner.has_said_all()
    };
    let (model, stream) = (field("model", "m").into_bytes(), field("stream", "true").into_bytes());
    let (file, long) = (file(b"RIFF"), field("prompt", &"x".repeat(100_000)).into_bytes());
    let begun = file.split_last_chunk::<6>().expect("a file").0;
    assert!(!said_all(&[begun]), "no model is known");
    assert!(!said_all(&[&model, b"--XB\r\n"]), "a field may follow");
    assert!(!said_all(&[&model, &stream, &file, b"--XB\r\n"]), "a field may follow a file too");
    assert!(said_all(&[&model, begun]));
    assert!(said_all(&[&model, long.split_last_chunk::<6>().expect("long").0]));
    assert!(said_all(&[&model, b"--XB--\r\n"]));
}

#[test]
fn a_form_asks_for_a_stream_in_the_words_that_engines_take_for_yes() {
    for (parts, stream) in [
        (vec![field("stream", "true")], true),
        (vec![field("stream", "True"), field("model", "m")], true),
        (vec![field("model", "m"), field("stream", "1")], true),
        (vec![field("stream", "on")], true),
        (vec![field("stream", "true"), field("stream", "false")], false),
        (vec![field("stream", "false")], false),
        (vec![field("stream", "")], false),
        (vec![field("stream", &"true".repeat(1000))], false),
        (vec![field("streams", "true")], false),
        (Vec::new(), false),
    ] {
        let form = format!("{}--XB--\r\n", parts.concat());
        assert_eq!(scan(form.as_bytes()).expect("a form").stream, stream, "{form:.200}");
    }
}

#[test]
fn multi_08_only_a_whole_delimiter_line_ends_a_part() {
    for content in [
        &b"a\r\n--XBnot\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nbad\r\n--XBnot"[..],
        b"a--XB\r\nb",
        b"a\n--XB\nb",
        b"\r\n--X",
        b"\r\n--XB-\r\n",
        b"\r\n--XB \t x",
        b"\r\n\r\n--XBz\r\n--XBy",
    ] {
        let form = body(&[&file(content), field("model", "good").as_bytes()]);
        assert_eq!(model_of(&form), "good", "{}", content.escape_ascii());
    }
}

#[test]
fn line_ends_padding_and_epilogue_are_no_parts() {
    let form = format!("\r\n{}--XB-- \r\nbye\r\n{}", field("model", "m"), field("model", "other"));
    assert_eq!(model_of(form.as_bytes()), "m");
    let padded = "--XB \t\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--XB--";
    assert_eq!(model_of(padded.as_bytes()), "m");
}

#[test]
fn headers_come_in_any_spelling_and_order() {
    for head in [
        "content-disposition:form-data;name=model",
        "Content-Type: text/plain\r\nCONTENT-DISPOSITION: Form-Data; NAME=\"model\"",
        "X: y\r\nContent-Disposition: form-data; x=\"a;name=no\"; name=\"model\"\r\nContent-Type: text/plain; charset=utf-8",
    ] {
        assert_eq!(
            model_of(format!("--XB\r\n{head}\r\n\r\nm é\r\n--XB--").as_bytes()),
            "m é",
            "{head}"
        );
    }
}

#[test]
fn what_is_called_model_and_is_no_field_is_passed_over() {
    for head in [
        "Content-Disposition: form-data; name=\"model\"; filename=\"weights.bin\"",
        "Content-Disposition: form-data; name=\"models\"",
        "Content-Type: text/plain",
    ] {
        let text = format!("--XB\r\n{head}\r\n\r\nx\r\n--XB--");
        assert_eq!(scan(text).expect("a form").model, None, "{head}");
    }
}

#[test]
fn models_that_disagree_are_refused_and_equal_ones_all_found() {
    let two = |second| body(&[field("model", "a").as_bytes(), field("model", second).as_bytes()]);
    let refused = Rejection::ConflictingModels { first: "a".into(), second: "b".into() };
    assert_eq!(scan(two("b")), Err(refused));
    assert_eq!(scan(two("a")).expect("a form").model.expect("named").spans.len(), 2);
}

#[test]
fn body_01_a_coded_name_is_refused() {
    for name in ["name*=utf-8''model", "name=\"x\"; name*=utf-8''mode%6c", "name*0=mo; name*1=del"]
    {
        let part = format!("--XB\r\nContent-Disposition: form-data; {name}\r\n\r\nbig\r\n");
        let refused = scan(body(&[field("model", "small").as_bytes(), part.as_bytes()]));
        let said = refused.expect_err("refused").message();
        assert!(said.contains("name is coded"), "{name}: {said}");
    }
}

#[test]
fn a_form_that_cannot_be_read_is_refused() {
    let cut = field("model", "m");
    let no_blank_line = "--XB\r\nContent-Disposition: form-data; name=\"model\"\r\n--XB--\r\n";
    let headers = format!("--XB\r\nX: {}\r\n\r\n\r\n--XB--", "y".repeat(20_000));
    let name = field("model", &"m".repeat(5000)) + "--XB--";
    for (text, problem) in [
        ("", "appears nowhere"),
        ("--XY\r\n", "before its first boundary"),
        ("hello\r\n--XB\r\n", "before its first boundary"),
        ("x--XB\r\n", "before its first boundary"),
        ("--XB\r\nContent-Disposition: attachment; name=model\r\n\r\nm\r\n", "than form-data"),
        (&*cut, "before its closing boundary"),
        ("--XB", "appears nowhere"),
        (no_blank_line, "before its closing boundary"),
        (&*headers, "16 KiB of headers"),
        (&*name, "longer than 4 KiB"),
        (&*(field("model", "") + "--XB--"), "not empty"),
        ("--XB\r\n\r\nx\r\n--XB--", "no headers"),
        ("--XB\r\nX: y\r\n\r\n--XB--", "followed by a boundary at once"),
        ("--XB\r\nX: y\r\n\r\nz\r\n--XB--XB\r\n", "followed by other bytes at once"),
    ] {
        let said = scan_cut("XB", text.as_bytes(), 7).expect_err("refused").message();
        assert!(said.contains(problem), "{said}");
    }
    let not_text =
        [b"--XB\r\nContent-Disposition: form-data; name=model\r\n\r\n", &b"\xFF\r\n--XB--"[..]]
            .concat();
    assert!(scan(not_text).expect_err("refused").message().contains("not UTF-8"));
}

#[test]
fn memory_stays_bounded_however_large_a_file_is() {
    let mut scanner = scanner("XB");
    let head = file(b"");
    scanner.push(&head[..head.len() - 2]).expect("fine");
    for _ in 0..1000 {
        scanner.push(&[b'\r'; 4096]).expect("fine");
        assert!(scanner.pending.len() < 64);
    }
}

/// What multer makes of a form: the fields called model, in order.
fn by_multer(body: Vec<u8>) -> Result<Vec<Vec<u8>>, multer::Error> {
    futures::executor::block_on(async {
        let stream = futures::stream::iter([Ok::<_, std::convert::Infallible>(body)]);
        let mut form = multer::Multipart::new(stream, "XB");
        let mut models = Vec::new();
        while let Some(field) = form.next_field().await? {
            let wanted = field.name() == Some("model") && field.file_name().is_none();
            let bytes = field.bytes().await?;
            if wanted {
                models.push(bytes.to_vec());
            }
        }
        Ok(models)
    })
}

/// Content that often has pieces of a delimiter in it.
fn tricky_content() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        Just(b"\r\n--X".to_vec()),
        Just(b"\r\n--".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"--XB".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

/// Where a lone line feed ends a part's headers for some readers, the next part is theirs to see and not
/// ours, or the other way round.
#[test]
fn header_lines_that_end_in_a_way_of_their_own_are_refused() {
    for bad in ["\n", "junk", ": nameless", "a: b\nc: d", "a: b\rc: d"] {
        let part = format!("--XB\r\n{bad}\r\n\r\nx\r\n");
        let form = body(&[part.as_bytes(), field("model", "m").as_bytes()]);
        let refused = scan_cut("XB", &form, form.len());
        assert!(refused.is_err(), "{bad:?} is {refused:?}");
    }
}

proptest! {
    #[test]
    fn it_reads_what_multer_reads(
        contents in prop::collection::vec(tricky_content(), 0..4), name in "[a-z/:é-]{1,12}", at in 0_usize..4
    ) {
        let model = field("model", &name).into_bytes();
        let mut parts: Vec<Vec<u8>> = contents.iter().map(|content| file(content)).collect();
        parts.insert(at.min(parts.len()), model);
        let form = body(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        // The pieces can make up a whole delimiter by chance, which only some readers then refuse.
        if let (Ok(ours), Ok(theirs)) = (scan_cut("XB", &form, form.len()), by_multer(form.clone())) {
            let ours: Vec<Vec<u8>> = ours.model.into_iter()
                .flat_map(|model| model.spans).map(|span| form[span].to_vec()).collect();
            prop_assert_eq!(&ours, &theirs);
            prop_assert_eq!(ours, [name.into_bytes()]);
        }
    }

    #[test]
    fn cuts_change_nothing(
        contents in prop::collection::vec(tricky_content(), 0..4),
        cuts in prop::collection::vec(1_usize..30, 1..40),
    ) {
        let mut form = body(&contents.iter().map(|content| file(content)).collect::<Vec<_>>()
            .iter().map(Vec::as_slice).chain([field("model", "m").as_bytes()]).collect::<Vec<_>>());
        form.truncate(form.len() - cuts[0] % 3);
        let mut cut = scanner("XB");
        let (mut rest, mut result) = (form.as_slice(), Ok(()));
        for size in cuts.iter().cycle() {
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            result = cut.push(chunk);
            rest = after;
            if rest.is_empty() || result.is_err() {
                break;
            }
        }
        prop_assert_eq!(result.and_then(|()| cut.finish()), scan_cut("XB", &form, form.len()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in tricky_content()) {
        let _ = scan(body);
    }
}
