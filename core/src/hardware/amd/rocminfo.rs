//! `rocminfo`: the architecture of each GPU agent, in the order of the GPUs.

use super::architecture;

/// The architectures of the agents whose device type is GPU. An agent names itself before it says its type;
/// the names of its ISAs, which come later, are not read.
pub fn architectures(output: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut name = None;
    for line in output.lines().map(str::trim) {
        let Some((key, value)) = line.split_once(':') else { continue };
        match (key.trim(), value.trim()) {
            ("Name", value) if !value.contains("--") => name = Some(value),
            ("Device Type", "GPU") => found.extend(name.take().and_then(architecture)),
            ("Device Type", _) => name = None,
            _ => {}
        }
    }
    found
}
