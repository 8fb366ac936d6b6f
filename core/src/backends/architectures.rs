//! How well engines run on the architectures of GPUs. What no engine says anything about is taken to work:
//! new GPUs appear before tables know them.

/// How well an engine runs on an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Support {
    /// As on any other.
    Full,
    /// It runs, and its makers do not promise it.
    Experimental,
    /// It does not run.
    None,
}

/// The entry of `known` that `architecture` begins with, the longest where there are several.
pub(super) fn support(known: &[(&str, Support)], architecture: &str) -> Support {
    let architecture = architecture.trim().to_ascii_lowercase();
    let fitting = known.iter().filter(|(prefix, _)| architecture.starts_with(prefix));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map_or(Support::Full, |(_, support)| *support)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::Backend;

    #[test]
    fn the_originals_table_holds() {
        use Support::{Experimental, Full, None};
        let table = [
            (Backend::Vllm, "sm_52", None),
            (Backend::VllmOmni, "sm_52", None),
            (Backend::Diffusers, "sm_52", None),
            (Backend::ComfyUi, "sm_50", None),
            (Backend::LlamaCpp, "sm_52", Full),
            (Backend::Ollama, "sm_52", Full),
            (Backend::MlcLlm, "sm_52", Full),
            (Backend::Diffusers, "gfx906", Experimental),
            (Backend::ComfyUi, "gfx906", Experimental),
            (Backend::MlcLlm, "gfx906", Experimental),
            (Backend::Vllm, "gfx906", Full),
            (Backend::Vllm, "gfx1100", Full),
            (Backend::Vllm, "SM_52", None),
        ];
        for (backend, architecture, support) in table {
            assert_eq!(backend.support(architecture), support, "{backend} on {architecture}");
        }
    }

    #[test]
    fn what_nobody_has_heard_of_is_taken_to_work() {
        assert_eq!(Backend::Vllm.support("sm_140"), Support::Full);
        assert_eq!(Backend::Vllm.support(""), Support::Full);
    }

    #[test]
    fn the_longest_beginning_counts() {
        let known = [("gfx9", Support::None), ("gfx90a", Support::Full)];
        assert_eq!(support(&known, "gfx90a"), Support::Full);
        assert_eq!(support(&known, "gfx906"), Support::None);
    }
}
