//! The settings that say who may send how much. All of it is off by default, but for the cutting down
//! of answers that cannot fit.

use std::path::PathBuf;

use clap::Args;
use flexinfer_core::callers::Callers;
use flexinfer_core::cors::Origins;
use flexinfer_core::hosts::Hosts;
use flexinfer_core::limits::{Admission, Clamp, Policy, Rate};

use super::reader::Reader;

/// The flags.
#[derive(Clone, Debug, Default, Args)]
pub struct RuleArguments {
    /// YAML file that says who has a key, for what and for how much; read again when it changes
    /// [FLEXINFER_KEYS_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Callers")]
    pub keys_file: Option<String>,
    /// Whether callers need a key: the token in the variable PROXY_AUTH_TOKEN, or one of --keys-file
    /// [PROXY_AUTH_ENABLED] [default: false, or true with --keys-file]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Callers")]
    pub auth_enabled: Option<String>,

    /// Pages in browsers that may read answers: origins with commas between them, such as
    /// https://chat.example.com or http://localhost:*, or * for every page [FLEXINFER_CORS_ORIGINS]
    #[arg(long, value_name = "ORIGINS", help_heading = "Callers")]
    pub cors_origins: Option<String>,

    /// Names that the gateway is asked by, with commas between them: llm.example.com, *.example.com for all below
    /// it, or * for every name; where only this machine reaches it, others than its own are refused
    /// [FLEXINFER_ALLOWED_HOSTS]
    #[arg(long, value_name = "NAMES", help_heading = "Callers")]
    pub allowed_hosts: Option<String>,

    /// Folder with the keys that engines want of their clients, one in each file; a Model names its own
    /// with config.apiKeySecret [FLEXINFER_ENGINE_SECRETS]
    #[arg(long, value_name = "DIR", help_heading = "Callers")]
    pub engine_secrets: Option<String>,

    /// File with the certificates of authorities, PEM, that those of https engines may be signed by, in place of
    /// the system's [FLEXINFER_ENGINE_CA]
    #[arg(long, value_name = "FILE", help_heading = "Callers")]
    pub engine_ca: Option<String>,

    /// Whether requests are limited by the second [PROXY_RATE_LIMIT_ENABLED] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Limits")]
    pub rate_limit_enabled: Option<String>,
    /// Requests per second for each model [PROXY_RATE_LIMIT_PER_MODEL] [default: 100]
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    pub rate_limit_per_model: Option<String>,
    /// Requests for one model that may come at once [PROXY_RATE_LIMIT_BURST] [default: 50]
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    pub rate_limit_burst: Option<String>,
    /// Requests per second for all models together; 0 is no limit [PROXY_RATE_LIMIT_GLOBAL]
    /// [default: 1000]
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    pub rate_limit_global: Option<String>,
    /// Requests for all models that may come at once [PROXY_RATE_LIMIT_GLOBAL_BURST] [default: 200]
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    pub rate_limit_global_burst: Option<String>,
    /// Whether requests that are not well-formed are refused here [PROXY_VALIDATE_REQUESTS]
    /// [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Limits")]
    pub validate_requests: Option<String>,
    /// Whether longer answers than fit into a model's context are asked for as long as fit
    /// [PROXY_MAX_TOKENS_CLAMP_ENABLED] [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Limits")]
    pub max_tokens_clamp_enabled: Option<String>,
    /// Tokens of the context that are kept for the prompt
    /// [PROXY_MAX_TOKENS_CLAMP_PROMPT_RESERVE_TOKENS] [default: 512]
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    pub max_tokens_clamp_prompt_reserve_tokens: Option<String>,
    /// Whether requests that cannot fit are refused, for Models with the annotation
    /// flexinfer.ai/admission: context-bounded [PROXY_ADMISSION_ENABLED] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Limits")]
    pub admission_enabled: Option<String>,
    /// Percent of the context that are kept free, since tokens are estimated, 0 to 50
    /// [PROXY_ADMISSION_SAFETY_MARGIN_PERCENT] [default: 5]
    #[arg(long, value_name = "PERCENT", help_heading = "Limits")]
    pub admission_safety_margin_percent: Option<String>,
    /// Tokens that an answer is taken for which its request does not bound
    /// [PROXY_ADMISSION_DEFAULT_MAX_TOKENS] [default: 256]
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    pub admission_default_max_tokens: Option<String>,
}

/// The variables of these flags, where they are not `FLEXINFER_…`.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("auth-enabled", "PROXY_AUTH_ENABLED"),
    ("rate-limit-enabled", "PROXY_RATE_LIMIT_ENABLED"),
    ("rate-limit-per-model", "PROXY_RATE_LIMIT_PER_MODEL"),
    ("rate-limit-burst", "PROXY_RATE_LIMIT_BURST"),
    ("rate-limit-global", "PROXY_RATE_LIMIT_GLOBAL"),
    ("rate-limit-global-burst", "PROXY_RATE_LIMIT_GLOBAL_BURST"),
    ("validate-requests", "PROXY_VALIDATE_REQUESTS"),
    ("max-tokens-clamp-enabled", "PROXY_MAX_TOKENS_CLAMP_ENABLED"),
    ("max-tokens-clamp-prompt-reserve-tokens", "PROXY_MAX_TOKENS_CLAMP_PROMPT_RESERVE_TOKENS"),
    ("admission-enabled", "PROXY_ADMISSION_ENABLED"),
    ("admission-safety-margin-percent", "PROXY_ADMISSION_SAFETY_MARGIN_PERCENT"),
    ("admission-default-max-tokens", "PROXY_ADMISSION_DEFAULT_MAX_TOKENS"),
];

/// The variable that holds the one key of everybody. A flag would show it to everybody on the machine.
const TOKEN: &str = "PROXY_AUTH_TOKEN";

/// Whose Models may name the keys of engines as they are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretsOf {
    /// Everybody's: whoever writes Models may read the folder.
    #[default]
    All,
    /// Those of this namespace.
    Namespace(String),
    /// Nobody's.
    Nobody,
}

/// Who may send how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSettings {
    /// Whether callers need a key.
    pub authenticate: bool,
    /// Where keys are told.
    pub keys_file: Option<PathBuf>,
    /// The caller of `PROXY_AUTH_TOKEN`; nobody where it is not set.
    pub token: Callers,
    /// The pages in browsers that may read answers.
    pub origins: Origins,
    /// The names that the gateway is asked by; `None` where any will do.
    pub hosts: Option<Hosts>,
    /// Where the keys that engines want are kept.
    pub engine_secrets: Option<PathBuf>,
    /// Whose Models may name a key as it is called; those of other namespaces have keys of their own.
    pub engine_secrets_of: SecretsOf,
    /// The authorities that engines' certificates may be signed by, in place of the system's.
    pub engine_ca: Option<PathBuf>,
    /// The limits that hold whoever asks.
    pub policy: Policy,
    /// Whether requests must be well-formed.
    pub validate: bool,
    /// How the length of answers is cut down.
    pub clamp: Option<Clamp>,
    /// How requests are measured that have to fit.
    pub admission: Option<Admission>,
    /// The tokens of an answer that its request does not bound.
    pub default_max_tokens: u32,
}

impl RuleSettings {
    pub(super) fn read<E: Fn(&str) -> Option<String>>(
        read: &mut Reader<'_, E>,
        arguments: &RuleArguments,
    ) -> Self {
        let keys_file = read.path("keys-file", arguments.keys_file.as_deref());
        let asked = arguments.auth_enabled.as_deref();
        let authenticate = read.choice("auth-enabled", asked, keys_file.is_some());
        let token = read.variable(TOKEN).unwrap_or_default();
        if !token.trim().is_empty() {
            read.show(TOKEN, "set (not shown)");
        } else if authenticate && keys_file.is_none() {
            read.complain(format!(
                "--auth-enabled (PROXY_AUTH_ENABLED): nobody has a key; set {TOKEN} or --keys-file"
            ));
        }
        let default_max_tokens = read.count(
            "admission-default-max-tokens",
            arguments.admission_default_max_tokens.as_deref(),
            256,
            1..=i32::MAX.unsigned_abs(),
        );
        Self {
            authenticate,
            keys_file,
            token: Callers::of_token(&token),
            engine_secrets: read.path("engine-secrets", arguments.engine_secrets.as_deref()),
            engine_secrets_of: SecretsOf::All,
            hosts: hosts(read, arguments.allowed_hosts.as_deref()),
            engine_ca: read.path("engine-ca", arguments.engine_ca.as_deref()),
            origins: origins(read, arguments.cors_origins.as_deref()),
            policy: policy(read, arguments),
            validate: read.choice(
                "validate-requests",
                arguments.validate_requests.as_deref(),
                false,
            ),
            clamp: clamp(read, arguments),
            admission: admission(read, arguments, default_max_tokens),
            default_max_tokens,
        }
    }
}

fn hosts<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    flag: Option<&str>,
) -> Option<Hosts> {
    let given = read.given("allowed-hosts", flag)?;
    match given.text.parse::<Hosts>() {
        Ok(hosts) => {
            read.show("allowed-hosts", hosts.to_string());
            Some(hosts)
        }
        Err(error) => {
            read.complain(format!("{}: {error}", given.from));
            None
        }
    }
}

fn origins<E: Fn(&str) -> Option<String>>(read: &mut Reader<'_, E>, flag: Option<&str>) -> Origins {
    let Some(given) = read.given("cors-origins", flag) else { return Origins::default() };
    match given.text.parse::<Origins>() {
        Ok(origins) => {
            read.show("cors-origins", origins.to_string());
            origins
        }
        Err(error) => {
            read.complain(format!("{}: {error}", given.from));
            Origins::default()
        }
    }
}

fn policy<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &RuleArguments,
) -> Policy {
    const MOST: u32 = 1_000_000;
    let enabled = read.choice("rate-limit-enabled", arguments.rate_limit_enabled.as_deref(), false);
    let mut count = |name, flag: &Option<String>, default, least| {
        read.count(name, flag.as_deref(), default, least..=MOST)
    };
    let per_model = count("rate-limit-per-model", &arguments.rate_limit_per_model, 100, 1);
    let burst = count("rate-limit-burst", &arguments.rate_limit_burst, 50, 1);
    let global = count("rate-limit-global", &arguments.rate_limit_global, 1000, 0);
    let global_burst = count("rate-limit-global-burst", &arguments.rate_limit_global_burst, 200, 1);
    Policy {
        global: (enabled && global > 0).then(|| Rate::per_second(global, global_burst)),
        per_model: enabled.then(|| Rate::per_second(per_model, burst)),
    }
}

fn clamp<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &RuleArguments,
) -> Option<Clamp> {
    let enabled = arguments.max_tokens_clamp_enabled.as_deref();
    let enabled = read.choice("max-tokens-clamp-enabled", enabled, true);
    let reserve = arguments.max_tokens_clamp_prompt_reserve_tokens.as_deref();
    let prompt_reserve =
        read.count("max-tokens-clamp-prompt-reserve-tokens", reserve, 512, 1..=u32::MAX);
    enabled.then_some(Clamp { prompt_reserve })
}

fn admission<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &RuleArguments,
    default_max_tokens: u32,
) -> Option<Admission> {
    let enabled = read.choice("admission-enabled", arguments.admission_enabled.as_deref(), false);
    let margin = arguments.admission_safety_margin_percent.as_deref();
    let safety_margin_percent = read.count("admission-safety-margin-percent", margin, 5, 0..=50);
    enabled.then_some(Admission { safety_margin_percent, default_max_tokens })
}
