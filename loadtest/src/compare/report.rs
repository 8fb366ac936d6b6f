//! What was measured, as tables for people and as one JSON object for programs.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Round;
use crate::crowd::Crowd;
use crate::probes::Probed;
use crate::targets::Name;

/// The connections at which CPU per request is compared: enough to keep the proxy busy.
const BUSY: usize = 32;
/// The connections at which latency is compared: one, where nothing waits for anything else.
const ALONE: usize = 1;

#[derive(Default)]
pub(crate) struct Report {
    pub threads: usize,
    pub streams: usize,
    /// Rounds by connections and target.
    pub requests: BTreeMap<usize, BTreeMap<Name, Vec<Round>>>,
    /// CPU microseconds per event, by target and round.
    pub events: BTreeMap<Name, Vec<f64>>,
    /// What the gateway's probes met while streams flowed.
    pub probed: Probed,
    pub crowd: Option<Crowd>,
}

impl Report {
    pub(crate) fn print(&self) {
        for (connections, targets) in &self.requests {
            println!("\n2 KB chat, {connections} connection(s), {} threads, medians", self.threads);
            println!(
                "{:<14}{:>12}{:>18}{:>16}{:>12}{:>12}",
                "", "requests/s", "CPU µs/request", "of rounds", "median µs", "added µs"
            );
            for name in targets.keys().copied() {
                let (least, most) = self.cpu_between(*connections, name);
                println!(
                    "{:<14}{:>12.0}{:>18.1}{:>16}{:>12.1}{:>12.1}",
                    name.shown(),
                    self.median(*connections, name, |round| round.per_second),
                    self.cpu(*connections, name),
                    format!("{least:.1} to {most:.1}"),
                    self.median(*connections, name, |round| round.median_microseconds),
                    self.added(*connections, name),
                );
            }
            let others = self.others(*connections);
            println!("others kept at most {others:.1} processors busy meanwhile");
        }
        println!("\n{} streams at 20 events/s", self.streams);
        for (name, rounds) in &self.events {
            println!("{:<14}{:>12.1} CPU µs/event", name.shown(), median(rounds.iter().copied()));
        }
        let Probed { asked, answered, slowest } = self.probed;
        println!(
            "{answered} of {asked} probes of the gateway were answered meanwhile, the slowest in {slowest:.1?}"
        );
        if let Some(crowd) = self.crowd {
            println!(
                "\n{} requests for one sleeping model: {} answered",
                crowd.waiters, crowd.answered
            );
            println!("memory per waiting request of 2 KB: {} bytes", crowd.bytes_per_waiter);
        }
        println!("\nAgainst the others, {BUSY} connections for CPU, {ALONE} for latency");
        for name in [Name::Gateway, Name::Everything, Name::Beside, Name::BesideEverything] {
            println!("{}", name.shown());
            for (ratio, value) in self.ratios(name) {
                println!("  {ratio:<24}{value:>8.2}");
            }
        }
    }

    /// One object; `figures` are what else belongs into it.
    pub(crate) fn json(&self, figures: Map<String, Value>) -> Result<String> {
        let mut object = self.figures(Name::Gateway);
        if self.events.contains_key(&Name::Everything) {
            let everything = Value::Object(self.figures(Name::Everything));
            object.insert("everything_on".to_owned(), everything);
        }
        object.extend(figures);
        object.insert("raw".to_owned(), self.raw());
        Ok(serde_json::to_string(&object)?)
    }

    fn figures(&self, name: Name) -> Map<String, Value> {
        let ratios = self.ratios(name).into_iter();
        ratios.map(|(ratio, value)| (ratio.to_owned(), json!(rounded(value)))).collect()
    }

    /// `name` against all others that were measured.
    fn ratios(&self, name: Name) -> Vec<(&'static str, f64)> {
        let cpu = |other| self.cpu(BUSY, name) / self.cpu(BUSY, other);
        let event = |name| median(self.events.get(&name).into_iter().flatten().copied());
        let events = |other| event(name) / event(other);
        let added = |other| self.added(ALONE, name) / self.added(ALONE, other);
        let ratios = [
            ("cpu_vs_pingora", cpu(Name::Pingora)),
            ("cpu_vs_nginx", cpu(Name::Nginx)),
            ("cpu_vs_haproxy", cpu(Name::Haproxy)),
            ("cpu_vs_envoy", cpu(Name::Envoy)),
            ("cpu_vs_vllm_router", cpu(Name::VllmRouter)),
            ("cpu_vs_smg", cpu(Name::Smg)),
            ("added_p50_vs_pingora", added(Name::Pingora)),
            ("stream_cpu_vs_pingora", events(Name::Pingora)),
            ("stream_cpu_vs_nginx", events(Name::Nginx)),
        ];
        ratios.into_iter().filter(|(_, ratio)| ratio.is_finite()).collect()
    }

    fn raw(&self) -> Value {
        let mut requests = Map::new();
        for (connections, targets) in &self.requests {
            let mut rows = Map::new();
            for name in targets.keys().copied() {
                let (least, most) = self.cpu_between(*connections, name);
                let row = json!({
                    "requests_per_second": rounded(self.median(*connections, name, |round| round.per_second)),
                    "cpu_us_per_request": rounded(self.cpu(*connections, name)),
                    "cpu_us_per_request_between": [rounded(least), rounded(most)],
                    "p50_us": rounded(self.median(*connections, name, |round| round.median_microseconds)),
                    "added_p50_us": rounded(self.added(*connections, name)),
                });
                rows.insert(name.shown().to_owned(), row);
            }
            requests.insert(format!("{connections}_connections"), Value::Object(rows));
        }
        let others = self.requests.keys().map(|connections| {
            (format!("{connections}_connections"), json!(rounded(self.others(*connections))))
        });
        let events = self.events.iter().map(|(name, rounds)| {
            (name.shown().to_owned(), json!(rounded(median(rounds.iter().copied()))))
        });
        json!({
            "threads": self.threads,
            "streams": self.streams,
            "requests": requests,
            "others": others.collect::<Map<_, _>>(),
            "cpu_us_per_event": events.collect::<Map<_, _>>(),
            "probes": {
                "asked": self.probed.asked,
                "answered": self.probed.answered,
                "slowest_ms": rounded(self.probed.slowest.as_secs_f64() * 1e3),
            },
            "crowd": self.crowd.map(|crowd| json!({
                "waiters": crowd.waiters,
                "answered": crowd.answered,
                "bytes_per_waiter": crowd.bytes_per_waiter,
            })),
        })
    }

    /// The most processors that others kept busy in any round: ratios are of quiet ones.
    fn others(&self, connections: usize) -> f64 {
        let rounds = self.requests.get(&connections).into_iter().flat_map(BTreeMap::values);
        rounds.flatten().map(|round| round.others).fold(0.0, f64::max)
    }

    fn cpu(&self, connections: usize, name: Name) -> f64 {
        self.median(connections, name, |round| round.cpu_microseconds)
    }

    /// The cheapest and the dearest round: how far what is between them can be trusted.
    fn cpu_between(&self, connections: usize, name: Name) -> (f64, f64) {
        let rounds = self.rounds(connections, name).map(|round| round.cpu_microseconds);
        rounds.fold((f64::INFINITY, 0.0), |(least, most), cpu| (least.min(cpu), most.max(cpu)))
    }

    /// The median latency above that of the upstream without a proxy.
    fn added(&self, connections: usize, name: Name) -> f64 {
        let of = |name| self.median(connections, name, |round| round.median_microseconds);
        of(name) - of(Name::Direct)
    }

    fn median(&self, connections: usize, name: Name, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds(connections, name).map(of))
    }

    fn rounds(&self, connections: usize, name: Name) -> impl Iterator<Item = &Round> {
        let rounds = self.requests.get(&connections).and_then(|targets| targets.get(&name));
        rounds.into_iter().flatten()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(cpu: f64, latency: f64) -> Vec<Round> {
        let round = Round {
            per_second: 1.0,
            cpu_microseconds: cpu,
            median_microseconds: latency,
            others: 0.5,
        };
        // One round that something else disturbed must not show.
        vec![round, round, Round { cpu_microseconds: cpu * 9.0, ..round }]
    }

    #[test]
    fn ratios_are_made_of_medians_and_of_latency_above_no_proxy() {
        let targets = BTreeMap::from([
            (Name::Direct, rounds(0.0, 50.0)),
            (Name::Nginx, rounds(20.0, 80.0)),
            (Name::Pingora, rounds(40.0, 90.0)),
            (Name::Gateway, rounds(50.0, 110.0)),
            (Name::Everything, rounds(60.0, 130.0)),
        ]);
        let streams = |cpu| vec![cpu];
        let events = [(Name::Nginx, 10.0), (Name::Gateway, 25.0), (Name::Everything, 30.0)];
        let events = events.map(|(name, cpu)| (name, streams(cpu))).into();
        let requests = BTreeMap::from([(1, targets.clone()), (32, targets)]);
        let report = Report { threads: 2, streams: 500, requests, events, ..Report::default() };
        let figures = Map::from_iter([("routing".to_owned(), json!(1))]);
        let json: Value = serde_json::from_str(&report.json(figures).unwrap()).unwrap();
        assert_eq!(json["cpu_vs_pingora"], 1.25);
        assert_eq!(json["cpu_vs_nginx"], 2.5);
        assert_eq!(json["added_p50_vs_pingora"], 1.5);
        assert_eq!(json["stream_cpu_vs_nginx"], 2.5);
        assert_eq!(json["everything_on"]["cpu_vs_pingora"], 1.5);
        assert_eq!(json["everything_on"]["added_p50_vs_pingora"], 2.0);
        assert_eq!(json["cpu_vs_envoy"], Value::Null, "what was not measured has no ratio");
        assert_eq!(json["routing"], 1);
        assert_eq!(json["raw"]["others"]["32_connections"], 0.5);
        let of_nginx = &json["raw"]["requests"]["1_connections"]["nginx"];
        assert_eq!(of_nginx["cpu_us_per_request_between"], json!([20.0, 180.0]));
    }
}
