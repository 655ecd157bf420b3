//! The table of tools. Versions of Go programs are not here: `testbed/go/<tool>/go.mod` pins them with checksums.

use std::path::Path;

/// What a tool is needed for, so that a step builds only what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The gates: formatting, tests, licences, spelling.
    Gates,
    /// A real Kubernetes to test on.
    Bed,
    /// The Helm chart, and the image it runs.
    Chart,
    /// Fuzzing, with a nightly compiler.
    Fuzz,
    /// What figures are compared with.
    Bench,
}

/// How a tool is made.
#[derive(Clone, Copy, Debug)]
pub enum Recipe {
    /// Built from the Go module in `testbed/go/<tool>`.
    Go {
        /// The module whose version is the tool's version.
        module: &'static str,
        /// Main packages, each with the name of its program.
        programs: &'static [(&'static str, &'static str)],
        /// Linker variables that tell the program its version; `{version}` and `{major}`, `{minor}` are filled in.
        version_variables: &'static [&'static str],
        /// Folders of the module that are data the bed needs, copied to `share/`.
        share: &'static [&'static str],
    },
    /// `cargo install --locked`.
    Cargo {
        /// Pinned version.
        version: &'static str,
        /// Features instead of the defaults, empty for the defaults.
        features: &'static str,
    },
    /// A Python package that ships a ready binary.
    Python {
        /// Pinned version.
        version: &'static str,
    },
}

/// One tool: a name, what needs it, how it is made, how long that took from cold on two cores.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Name of the tool, of its package, and of its folder in `testbed/go` where it is a Go module.
    pub name: &'static str,
    /// What needs it.
    pub group: Group,
    /// How it is made.
    pub recipe: Recipe,
    /// Seconds a cold build took here, to tell a waiting person.
    pub cold_seconds: u32,
}

impl Tool {
    /// Names of the programs the tool provides.
    pub fn programs(&self) -> Vec<&'static str> {
        match self.recipe {
            Recipe::Go { programs, .. } => programs.iter().map(|(program, _)| *program).collect(),
            Recipe::Cargo { .. } | Recipe::Python { .. } => vec![self.name],
        }
    }
}

/// Every tool, in the order in which a clean machine wants them.
pub const CATALOGUE: &[Tool] = &[
    Tool { name: "typos", group: Group::Gates, recipe: Recipe::Python { version: "1.51.1" }, cold_seconds: 10 },
    Tool {
        name: "cargo-nextest",
        group: Group::Gates,
        // The default feature `self-update` brings an HTTP client that is half of the build time.
        recipe: Recipe::Cargo { version: "0.9.151", features: "default-no-update" },
        cold_seconds: 240,
    },
    Tool {
        name: "cargo-deny",
        group: Group::Gates,
        recipe: Recipe::Cargo { version: "0.20.2", features: "" },
        cold_seconds: 210,
    },
    Tool {
        name: "etcd",
        group: Group::Bed,
        recipe: Recipe::Go {
            module: "go.etcd.io/etcd/server/v3",
            programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
            version_variables: &[],
            share: &[],
        },
        cold_seconds: 75,
    },
    Tool {
        name: "kubernetes",
        group: Group::Bed,
        recipe: Recipe::Go {
            module: "k8s.io/kubernetes",
            programs: &[
                ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
                ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
                ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
                ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
                ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            ],
            // Without these, clients see v0.0.0 and refuse features.
            version_variables: &[
                "k8s.io/component-base/version.gitVersion={version}",
                "k8s.io/component-base/version.gitMajor={major}",
                "k8s.io/component-base/version.gitMinor={minor}",
            ],
            share: &[],
        },
        cold_seconds: 510,
    },
    Tool {
        name: "containerd",
        group: Group::Bed,
        recipe: Recipe::Go {
            module: "github.com/containerd/containerd/v2",
            programs: &[
                ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
                ("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"),
                ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
            ],
            version_variables: &["github.com/containerd/containerd/v2/version.Version={version}"],
            share: &[],
        },
        cold_seconds: 300,
    },
    Tool {
        name: "kwok",
        group: Group::Bed,
        recipe: Recipe::Go {
            module: "sigs.k8s.io/kwok",
            programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
            version_variables: &[],
            // The program has no built-in stages; its own ones are data files of the module.
            share: &["kustomize/stage", "kustomize/metrics"],
        },
        cold_seconds: 120,
    },
    Tool {
        name: "metrics-server",
        group: Group::Bed,
        recipe: Recipe::Go {
            module: "sigs.k8s.io/metrics-server",
            programs: &[("metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server")],
            version_variables: &[],
            share: &[],
        },
        cold_seconds: 170,
    },
    Tool {
        name: "helm",
        group: Group::Chart,
        recipe: Recipe::Go {
            module: "helm.sh/helm/v4",
            programs: &[("helm", "helm.sh/helm/v4/cmd/helm")],
            version_variables: &[],
            share: &[],
        },
        cold_seconds: 170,
    },
    Tool {
        name: "cargo-fuzz",
        group: Group::Fuzz,
        recipe: Recipe::Cargo { version: "0.13.2", features: "" },
        cold_seconds: 60,
    },
    Tool {
        name: "vpa",
        group: Group::Bench,
        recipe: Recipe::Go {
            module: "k8s.io/autoscaler/vertical-pod-autoscaler",
            programs: &[("vpa-recommender", "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender")],
            version_variables: &[],
            share: &[],
        },
        cold_seconds: 200,
    },
];

/// A Debian package and a file that shows it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debian {
    /// Package name.
    pub package: &'static str,
    /// Any of these shows the package, or an equal of it, is there.
    pub shown_by: &'static [&'static str],
}

impl Debian {
    /// The file that shows it, if it is there.
    pub fn installed(&self) -> Option<&'static Path> {
        self.shown_by.iter().map(Path::new).find(|path| path.exists())
    }
}

/// Runs containers.
pub const RUNC: Debian = Debian { package: "runc", shown_by: &["/usr/sbin/runc", "/usr/bin/runc"] };

const BED_PACKAGES: &[Debian] = &[
    RUNC,
    Debian { package: "containernetworking-plugins", shown_by: &["/usr/lib/cni/bridge"] },
    Debian { package: "iptables", shown_by: &["/usr/sbin/iptables"] },
    Debian { package: "iproute2", shown_by: &["/usr/sbin/ip", "/usr/bin/ip", "/sbin/ip"] },
    Debian { package: "util-linux", shown_by: &["/usr/bin/nsenter"] },
];

/// The manager's image has nothing in it but the manager, and the manager brings C code (TLS) that must be built for that.
const CHART_PACKAGES: &[Debian] = &[Debian { package: "musl-tools", shown_by: &["/usr/bin/musl-gcc"] }];

/// Debian packages a group needs besides its tools.
pub fn debian_packages(group: Group) -> &'static [Debian] {
    match group {
        Group::Bed => BED_PACKAGES,
        Group::Chart => CHART_PACKAGES,
        Group::Gates | Group::Fuzz | Group::Bench => &[],
    }
}
