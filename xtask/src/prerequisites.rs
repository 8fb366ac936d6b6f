//! What a machine needs beside Rust. Root on a machine with apt gets it installed; anyone else gets the one
//! line that installs it, because a build must not ask for passwords.

use std::process::Command;

use anyhow::{Result, bail};

use crate::program;

/// Something the build or the tests need: present if any of its programs is, and the proof, where there is
/// one, succeeds.
pub(crate) struct Need {
    pub name: &'static str,
    programs: &'static [&'static str],
    /// A command that fails where what is there will not do.
    proof: &'static [&'static str],
    why: &'static str,
    /// The package's name per package manager, in the order of `MANAGERS`.
    packages: [&'static str; 6],
}

impl Need {
    /// Where the first of its programs that is there lies.
    pub(crate) fn program(&self) -> Option<std::path::PathBuf> {
        self.programs.iter().find_map(|program| program::find(program))
    }
}

struct Manager {
    program: &'static str,
    install: &'static str,
}

const MANAGERS: [Manager; 6] = [
    Manager { program: "apt-get", install: "sudo apt-get install" },
    Manager { program: "dnf", install: "sudo dnf install" },
    Manager { program: "pacman", install: "sudo pacman -S" },
    Manager { program: "zypper", install: "sudo zypper install" },
    Manager { program: "apk", install: "sudo apk add" },
    Manager { program: "brew", install: "brew install" },
];

pub(crate) const COMPILER: Need = Need {
    name: "a C compiler",
    programs: &["cc", "gcc", "clang"],
    proof: &[],
    why: "TLS, compression and the allocator hold C code",
    packages: ["gcc libc6-dev", "gcc", "gcc", "gcc", "gcc musl-dev", "gcc"],
};
pub(crate) const COMPILER_CXX: Need = Need {
    name: "a C++ compiler",
    programs: &["c++", "g++", "clang++"],
    proof: &[],
    why: "llama.cpp is written in C++",
    packages: ["g++", "gcc-c++", "gcc", "gcc-c++", "g++", "gcc"],
};
pub(crate) const CMAKE: Need = Need {
    name: "cmake",
    programs: &["cmake"],
    proof: &[],
    why: "it builds zlib-ng, which Pingora links",
    packages: ["cmake"; 6],
};
pub(crate) const MAKE: Need = Need {
    name: "make",
    programs: &["make", "ninja"],
    proof: &[],
    why: "cmake hands the work to it",
    packages: ["make"; 6],
};
pub(crate) const PYTHON: Need = Need {
    name: "Python 3 with venv",
    programs: &["python3"],
    proof: &["python3", "-c", "import venv, ensurepip"],
    why: "the tests drive the gateway with Python clients",
    packages: ["python3 python3-venv", "python3", "python", "python3", "python3", "python"],
};
pub(crate) const NODE: Need = Need {
    name: "Node 20 or newer with npm",
    programs: &["npm"],
    proof: &["node", "-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"],
    why: "the tests drive the gateway with OpenAI's Node client",
    packages: ["nodejs npm", "nodejs npm", "nodejs npm", "nodejs npm", "nodejs npm", "node"],
};
pub(crate) const CURL: Need = Need {
    name: "curl with HTTP/2",
    programs: &["curl"],
    proof: &["curl", "--http2-prior-knowledge", "--json", "{}", "--version"],
    why: "the tests drive the gateway with curl over every version of HTTP",
    packages: ["curl"; 6],
};
pub(crate) const CHROMIUM: Need = Need {
    name: "Chromium",
    programs: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    proof: &[],
    why: "a page in a browser asks the gateway",
    packages: ["chromium"; 6],
};
pub(crate) const OPENSSL: Need = Need {
    name: "openssl",
    programs: &["openssl"],
    proof: &[],
    why: "it makes the certificate that the gateway shows in the tests",
    packages: ["openssl"; 6],
};
pub(crate) const GO: Need = Need {
    name: "Go 1.21 or newer",
    programs: &["go"],
    // From this version on, Go fetches the newer one that a module asks for, and has a setting for it.
    proof: &["sh", "-c", "test -n \"$(go env GOTOOLCHAIN)\""],
    why: "etcd and Kubernetes are written in it",
    packages: ["golang-go", "golang", "go", "go", "go", "go"],
};
pub(crate) const IPROUTE: Need = Need {
    name: "iproute2",
    programs: &["ip"],
    proof: &[],
    why: "each pod of the test cluster has a network of its own",
    packages: ["iproute2", "iproute", "iproute2", "iproute2", "iproute2", "iproute2mac"],
};
pub(crate) const NGINX: Need = Need {
    name: "nginx",
    programs: &["nginx"],
    proof: &[],
    why: "the bench measures beside it",
    packages: ["nginx-light"; 6],
};
pub(crate) const RSYNC: Need = Need {
    name: "rsync",
    programs: &["rsync"],
    proof: &[],
    why: "the flash loader is measured beside it",
    packages: ["rsync"; 6],
};
pub(crate) const RCLONE: Need = Need {
    name: "rclone",
    programs: &["rclone"],
    proof: &[],
    why: "the flash loader is measured beside it",
    packages: ["rclone"; 6],
};

/// What building the gateway takes.
pub(crate) const BUILD: [Need; 3] = [COMPILER, CMAKE, MAKE];

/// Sees to it that all needs are there, or says exactly how to get those that are not.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !present(need)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|need| need.name).collect::<Vec<_>>().join(", ");
    if program::find("apt-get").is_some() && root() {
        println!("Installing {names} with apt-get");
        install(&missing)?;
        match missing.iter().find(|need| !present(need)) {
            Some(need) => bail!("{} was installed and still is not there: too old?", need.name),
            None => return Ok(()),
        }
    }
    bail!("{}", advice(&missing, installed_manager()));
}

/// Whether a need is met already.
pub(crate) fn present(need: &Need) -> bool {
    let there = need.programs.iter().any(|program| program::find(program).is_some());
    there
        && need.proof.split_first().is_none_or(|(program, arguments)| {
            program::output(Command::new(program).args(arguments)).is_ok()
        })
}

fn install(missing: &[&Need]) -> Result<()> {
    let packages = missing.iter().flat_map(|need| need.packages[0].split(' '));
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    // A fresh image has no package list; an old one names versions that are gone. Offline, what is there serves.
    if program::run(Command::new("apt-get").args(["update", "--quiet"])).is_err() {
        eprintln!("apt-get update failed; trying with the package list that is there");
    }
    program::run(&mut apt)
}

fn root() -> bool {
    program::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn installed_manager() -> Option<usize> {
    MANAGERS.iter().position(|manager| program::find(manager.program).is_some())
}

fn advice(missing: &[&Need], manager: Option<usize>) -> String {
    let mut lines = vec!["this machine lacks:".to_owned()];
    for need in missing {
        lines.push(format!("  {} ({}): {}", need.name, need.programs.join(" or "), need.why));
    }
    lines.push("Install with".to_owned());
    for (index, known) in MANAGERS.iter().enumerate() {
        if manager.is_none_or(|ours| ours == index) {
            let packages = missing.iter().filter_map(|need| need.packages.get(index)).copied();
            let packages = packages.collect::<Vec<_>>().join(" ");
            lines.push(format!("  {} {packages}", known.install));
        }
    }
    lines.push("and run this command again.".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_one_line_for_the_package_manager_that_is_there() {
        let advice = advice(&[&COMPILER, &CMAKE], Some(1));
        assert!(advice.contains("sudo dnf install gcc cmake"), "{advice}");
        assert!(!advice.contains("pacman"), "{advice}");
    }

    #[test]
    fn advice_lists_every_package_manager_when_none_is_known() {
        let advice = advice(&[&CMAKE], None);
        for manager in &MANAGERS {
            assert!(advice.contains(manager.install), "{advice}");
        }
    }
}
