//! Whatever JSON a client sends, however it is cut, and wherever it names its model: the engine receives
//! those bytes, except for the model's name, a number that bounds the answer, and a byte order mark.

use flexinfer_core::fleet::Served;
use flexinfer_core::limits::Clamp;
use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::client::{Client, chunked_request, request};
use flexinfer_testkit::origin::Origin;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use crate::world::{World, model};

const CHAT: &str = "/v1/chat/completions";
const CALLED: &str = "m";
const ENGINE_NAME: &str = "org/the-engines-own";

/// Where a request names its model.
#[derive(Clone, Copy, Debug)]
enum NamedIn {
    Body,
    Header,
    Path,
    /// The header decides, and the body names another model.
    HeaderOverBody,
}

/// Where a number stands that bounds an answer, as the client says it and as its engine is told.
const BOUND: &str = "@";
const ASKED: &str = "90000";
const CUT: &str = "3584";

/// A body in pieces: the text before the model's value, that value, and the text after it.
#[derive(Clone, Debug)]
struct Written {
    mark: bool,
    before: String,
    model: Option<String>,
    after: String,
}

impl Written {
    fn text(&self, model: Option<&str>) -> String {
        let mark = if self.mark { "\u{feff}" } else { "" };
        format!("{mark}{}{}{}", self.before, model.unwrap_or_default(), self.after)
    }

    fn sent(&self) -> String {
        self.text(self.model.as_deref()).replace(BOUND, ASKED)
    }

    fn wanted(&self) -> String {
        let name = format!("\"{ENGINE_NAME}\"");
        let (before, after) = (self.before.replace(BOUND, CUT), self.after.replace(BOUND, CUT));
        let bare = Self { mark: false, before, after, ..self.clone() };
        if self.model.is_some() {
            return bare.text(Some(&name));
        }
        // A body without a name gets one, as its first field.
        let whole = bare.text(None);
        let (start, rest) = whole.split_once('{').unwrap();
        let comma = if rest.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('}') {
            ""
        } else {
            ","
        };
        format!("{start}{{\"model\":{name}{comma}{rest}")
    }
}

fn blank() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,3}"
}

/// A string as JSON writes it, escapes and all.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9 {}\\[\\]:,]{0,6}",
        Just("\\\"".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\u00e9".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\u{1f30a}\u{e9}".to_owned()),
        Just("\\\"model\\\":\\\"x\\\"".to_owned()),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn scalar() -> impl Strategy<Value = String> {
    let numbers =
        ["0", "-0.0", "1.10", "1e400", "1E-7", "117.63331139400017", "123456789012345678901"];
    prop_oneof![
        string(),
        prop::sample::select(&["null", "true", "false"][..]).prop_map(str::to_owned),
        prop::sample::select(numbers.to_vec()).prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let items = prop::collection::vec((blank(), inner.clone(), blank()), 0..4);
        let fields = prop::collection::vec((blank(), string(), blank(), inner, blank()), 0..4);
        let joined = |parts: Vec<String>| parts.join(",");
        prop_oneof![
            items.prop_map(move |items| {
                let items = items.into_iter().map(|(before, item, after)| before + &item + &after);
                format!("[{}]", joined(items.collect()))
            }),
            // A `model` further in is none of ours.
            fields.prop_map(move |fields| {
                let mut written: Vec<String> = fields
                    .into_iter()
                    .map(|(before, key, gap, value, after)| {
                        format!("{before}{key}{gap}:{value}{after}")
                    })
                    .collect();
                written.push("\"model\":\"inner\"".to_owned());
                format!("{{{}}}", joined(written))
            }),
        ]
    })
}

/// Fields whose keys decide nothing, which may come more than once.
fn fields() -> impl Strategy<Value = Vec<String>> {
    let key = prop::sample::select(
        &["\"top_p\"", "\"x\"", "\"x\"", "\"\\u0078\"", "\"tools\"", "\"\""][..],
    );
    let field = (blank(), key, blank(), blank(), value(), blank());
    let field = field.prop_map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"));
    prop::collection::vec(field, 0..5)
}

/// A field that bounds the answer, and may come once.
fn bound() -> impl Strategy<Value = Option<String>> {
    let field = prop::sample::select(
        &["max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"][..],
    );
    let field = (field, blank()).prop_map(|(key, gap)| format!("\"{key}\"{gap}:{gap}{BOUND}{gap}"));
    let key = prop::sample::select(&["\"num_predict\"", "\"num_pr\\u0065dict\""][..]);
    let options = (fields(), key, blank(), fields()).prop_map(|(mut first, key, gap, last)| {
        first.push(format!("{gap}{key}{gap}:{gap}{BOUND}{gap}"));
        first.extend(last);
        format!("\"options\":{{{}}}", first.join(","))
    });
    prop::option::of(prop_oneof![field, options])
}

fn written() -> impl Strategy<Value = Written> {
    let key = prop::sample::select(&["\"model\"", "\"mod\\u0065l\""][..]);
    let name = prop::sample::select(&["\"m\"", "\"\\u006d\""][..]);
    let named = prop::option::weighted(0.8, (key, blank(), name));
    (any::<bool>(), blank(), (fields(), bound()), named, fields(), blank()).prop_map(
        |(mark, lead, (mut first, bound), named, last, trail)| {
            first.extend(bound);
            let joined = |fields: &[String]| fields.join(",");
            let Some((key, gap, name)) = named else {
                let all: Vec<String> = first.into_iter().chain(last).collect();
                let after = format!("{{{}}}{trail}", joined(&all));
                return Written { mark, before: lead, model: None, after };
            };
            let comma = |fields: &[String]| if fields.is_empty() { "" } else { "," };
            let before = format!("{lead}{{{}{}{key}{gap}:", joined(&first), comma(&first));
            let after = format!("{}{}}}{trail}", comma(&last), joined(&last));
            Written { mark, before, model: Some(name.to_owned()), after }
        },
    )
}

/// The request's bytes, cut into chunks of `sizes` or with a length where there are none.
fn bytes(written: &Written, named_in: NamedIn, sizes: &[usize]) -> Vec<u8> {
    let body = written.sent();
    let (path, headers) = match named_in {
        NamedIn::Body => (CHAT.to_owned(), vec![]),
        NamedIn::Header | NamedIn::HeaderOverBody => {
            (CHAT.to_owned(), vec![("X-Model-ID", CALLED)])
        }
        NamedIn::Path => (format!("/model/{CALLED}{CHAT}"), vec![]),
    };
    if sizes.is_empty() {
        request("POST", &path, &headers, body.as_bytes())
    } else {
        chunked_request("POST", &path, &headers, body.as_bytes(), sizes)
    }
}

fn models() -> Vec<Served> {
    let mut called = model(CALLED, Some(ENGINE_NAME));
    called.effective.context_window = Some(4096);
    vec![called, model("other", None)]
}

#[test]
fn an_engine_receives_what_was_sent_but_for_the_documented_splices() {
    let runtime = Runtime::new().unwrap();
    let (engine, world) = runtime.block_on(async {
        let engine = Origin::answering("{}").await.unwrap();
        let rules = Rules { clamp: Some(Clamp { prompt_reserve: 512 }), ..Rules::default() };
        let world = World::ruled(engine.address, models(), rules);
        (engine, world)
    });
    let source = prop_oneof![
        Just(NamedIn::Body),
        Just(NamedIn::Header),
        Just(NamedIn::Path),
        Just(NamedIn::HeaderOverBody),
    ];
    let strategy = (
        written(),
        source,
        prop::collection::vec(1_usize..40, 0..6),
        prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    );
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |(mut written, named_in, sizes, cuts)| {
        let named_in = if written.model.is_some() { named_in } else { NamedIn::Path };
        if let NamedIn::HeaderOverBody = named_in {
            written.model = Some("\"other\"".to_owned());
        }
        let bytes = bytes(&written, named_in, &sizes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        let answer = runtime.block_on(async {
            let mut client = Client::connect(world.address).await.unwrap();
            client.send_cut(&bytes, &cuts).await.unwrap();
            client.answer().await.unwrap()
        });
        prop_assert_eq!(answer.status(), 200, "{}", answer.text());
        let seen = engine.requests().pop().unwrap();
        prop_assert_eq!(String::from_utf8(seen.body).unwrap(), written.wanted());
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(engine.faults(), []);
}
