//! Prints what routing costs, as ratios to something measured in the same run, and ends with the worst of each
//! kind as one JSON object. `cargo xtask bench` runs it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is no decision: it measures what decisions cost"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flexinfer_core::openai::Facts;
use flexinfer_core::routing::{Key, KeyLengths, Roster, Said, Source, Strategy, Wish};
use serde::de::IgnoredAny;
use strum::IntoEnumIterator as _;

const ROUNDS: usize = 31;
const BOOKINGS: u32 = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut lines = String::new();
    let (mut keys, mut among) = (0.0_f64, 0.0_f64);
    for (name, body) in [("of many turns", turns()?), ("of one long prompt", one_prompt())] {
        let pass =
            median(|| black_box(serde_json::from_str::<IgnoredAny>(black_box(&body))).is_ok());
        let facts = Facts::read(body.as_bytes()).map_err(|rejection| rejection.message())?;
        for strategy in Strategy::iter().filter(|strategy| strategy.is_keyed()) {
            let said = Said {
                header: &|_| None,
                json: Some((&facts, body.as_bytes())),
                lengths: KeyLengths::default(),
            };
            let key = median(|| black_box(strategy.key(black_box(&said))).is_some());
            let (size, key) = (body.len() / 1000, ratio(key, pass));
            keys = keys.max(key);
            writeln!(
                lines,
                "key by {strategy} for {size} KB {name}: {key:.2} x one serde_json pass"
            )?;
        }
    }
    for strategy in Strategy::iter() {
        let (few, many) = (choices(strategy, 10), choices(strategy, 1000));
        let (each, many) = (many / BOOKINGS, ratio(many, few));
        among = among.max(many);
        writeln!(lines, "choice by {strategy} among 1000: {many:.2} x among 10 ({each:?})")?;
    }
    let figures =
        serde_json::json!({ "routing_key_vs_serde_json": keys, "routing_1000_vs_10": among });
    writeln!(lines, "{figures}")?;
    std::io::stdout().write_all(lines.as_bytes())?;
    Ok(())
}

/// A conversation of 400 KB in turns of a kilobyte.
fn turns() -> Result<String, std::fmt::Error> {
    let mut body =
        String::from(r#"{"model":"m","messages":[{"role":"system","content":"Be helpful."}"#);
    let text = "so it goes on\\n".repeat(70);
    let mut user = true;
    while body.len() < 400_000 {
        let role = if user { "user" } else { "assistant" };
        write!(body, r#",{{"role":"{role}","content":"{text}"}}"#)?;
        user = !user;
    }
    body.push_str("]}");
    Ok(body)
}

/// One of which nearly all is the system prompt.
fn one_prompt() -> String {
    let prompt = "You are \\\"helpful\\\".\\n".repeat(20_000);
    format!(
        r#"{{"model":"m","messages":[{{"role":"system","content":"{prompt}"}},{{"role":"user","content":"Hi"}}]}}"#
    )
}

/// What many bookings take when `count` endpoints share a moderate load.
fn choices(strategy: Strategy, count: u16) -> Duration {
    let mut roster: Roster<SocketAddr> = Roster::new(strategy, Some(64));
    let endpoints: Vec<SocketAddr> =
        (0..count).map(|number| SocketAddr::from(([10, 0, 0, 1], number))).collect();
    roster.set_members(endpoints.iter().copied());
    for endpoint in &endpoints {
        roster.set_open(endpoint, true);
    }
    let wishes: Vec<Wish<SocketAddr>> = (0..BOOKINGS)
        .map(|number| {
            let key = Key::new(Source::SessionHeader, &number.to_string());
            Wish { key: strategy.is_keyed().then_some(key), ..Wish::default() }
        })
        .collect();
    let standing: Vec<SocketAddr> =
        (0..count).filter_map(|_| roster.book(&Wish::default())).collect();
    black_box(&standing);
    median(|| {
        wishes.iter().all(|wish| match roster.book(wish) {
            Some(chosen) => {
                roster.finish(&chosen);
                true
            }
            None => false,
        })
    })
}

/// The median of what `work` takes; it must succeed each time.
fn median(mut work: impl FnMut() -> bool) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .filter_map(|_| {
            let begun = Instant::now();
            work().then(|| begun.elapsed())
        })
        .collect();
    times.sort_unstable();
    times.get(ROUNDS / 2).copied().unwrap_or(Duration::MAX)
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
