# The recipes of this project. CI runs the same ones.

set shell := ["bash", "-euo", "pipefail", "-c"]

# The gates' tools, found in the cache that `just tools` fills.
with_gates := 'PATH="$(cargo run --quiet --locked --package pillion-tools --bin tools -- gates --path):$PATH"'

# Prefixes of e2e tests that run the manager from its image.
with_manager_image := '^(inject(_chart.*|_load.*|_quickstart.*)?|safe.*|agent(_page.*|_)?)?$'
# And of those whose pods run the agent.
with_agent_image := '^((finish|agent|safe).*)?$'

# E2e tests that compare everything on the machine before and after a bed, or measure latencies: nothing runs beside them.
alone := 'test(/^smoke_own_bed/) | test(/^inject_(hostile|load)/) | test(/^canary_/) | test(/^finish_phases/) | test(/told_to_end_soon/) | test(/a_large_rollout/)'

# `--timings` where the gate records times.
timings := env("PILLION_TIMINGS", "")
# The packages that e2e tests are built with. The gate builds the whole workspace once: cargo builds a dependency again for every other
# selection of packages, as their features differ. By hand, the tests alone are less to build.
e2e_packages := if timings == "" { "--package pillion-e2e" } else { "--workspace" }
e2e_programs := if timings == "" { "--package pillion-testbed --bin bed --package pillion-manager --bin pillion-manager --example next_version --package pillion-cli --bin pillion" } else { "--workspace --bins --tests --examples" }

# List the recipes.
default:
    @just --list --unsorted

# Build or install outside programs: gates, bed, chart, fuzz, bench. A second when they are there.
tools *GROUPS:
    cargo run --quiet --locked --package pillion-tools --bin tools -- {{ GROUPS }}

# Format.
fmt:
    cargo fmt --all

# Check the format.
fmt-check:
    cargo fmt --all --check

# Lint; a warning is an error.
lint:
    cargo clippy --locked --workspace --all-targets {{ timings }} -- --deny warnings

# Check the layout of the workspace, spelling, and that generated files are fresh.
tidy: (tools "gates")
    cargo xtask tidy
    {{ with_gates }} typos

# Write generated files again.
codegen:
    cargo xtask codegen

# Check licences, bans and sources of dependencies. Not advisories: their database needs a network, `just advisories` asks it.
deny: (tools "gates")
    {{ with_gates }} cargo deny --locked check bans licenses sources

# Check dependencies against the advisory database.
advisories: (tools "gates")
    {{ with_gates }} cargo deny --locked check advisories

# Unit, property and integration tests, and examples in the docs. No cluster.
test *ARGS: (tools "gates")
    {{ if timings == "" { "" } else { "cargo build --quiet --locked --workspace --bins --tests --examples " + timings } }}
    {{ with_gates }} cargo nextest run --locked {{ if timings == "" { "--workspace --exclude pillion-e2e" } else { "--workspace -E 'not package(pillion-e2e)'" } }} {{ ARGS }}
    cargo test --quiet --locked --workspace --doc

# Make the pure crates wrong in one place at a time, and see whether a test notices. ONLY: a part of a file or meaning; SHARE: 0/8 to 7/8.
mutants ONLY='' SHARE='':
    cargo xtask mutants {{ quote(ONLY) }} {{ SHARE }}

# A target whose inputs are files that people write begins with the examples.
# Fuzz TARGET (`ls fuzz/fuzz_targets`) for SECONDS with a nightly compiler; a finding stays in `fuzz/artifacts`.
fuzz TARGET SECONDS='60': (tools "fuzz")
    mkdir -p fuzz/corpus/{{ TARGET }}
    PATH="$(cargo run --quiet --locked --package pillion-tools --bin tools -- fuzz --path):$PATH" \
        cargo +nightly fuzz run --fuzz-dir fuzz {{ TARGET }} fuzz/corpus/{{ TARGET }} {{ if TARGET == "sidecar_set" { "examples/sidecarset" } else if TARGET == "autoscaler" { "examples/right-sizing" } else if TARGET == "agent_config" { "examples/agent" } else if TARGET =~ "pod|review" { "e2e/fixtures" } else { "" } }} \
        -- -max_total_time={{ SECONDS }} -max_len=8192

# Pack the test images, the agent's, and the manager's, which takes minutes where its code has changed.
images FAMILIES='testapp agent manager': (tools "chart")
    cargo xtask image {{ FAMILIES }}

# Measure what the agent adds to a container that it wraps; fails above the promised figures. Half a minute.
footprint: (tools "chart")
    cargo xtask footprint

# A real Kubernetes for you: `just bed up --node --fleet 100 --metrics`, `just bed status`, `just bed kubectl …`, `just bed down`.
[positional-arguments, no-exit-message]
@bed VERB *ARGS:
    {{ if VERB == "up" { "cargo xtask image" } else { "true" } }}
    cargo run --quiet --locked --package pillion-testbed --bin bed -- "$@"

# Build the programs that e2e tests run.
e2e-programs:
    cargo build --quiet --locked {{ timings }} {{ e2e_programs }}

# Modules ending in `_own_bed` start beds of their own; all others share one, beside them. The tests in `alone` come last.
# The tier ci runs the manager of the dev build in its image too, the others the shipped one, which takes minutes to compile.
# Tests on a real Kubernetes whose name starts with PREFIX, of one TIER (ci, nightly) or of both.
e2e PREFIX='' TIER='(ci|nightly)': (tools "gates" "bed" "chart") e2e-programs (images "testapp" + (if PREFIX =~ with_agent_image { " agent" } else { "" }) + (if PREFIX =~ with_manager_image { if TIER == "ci" { " manager-dev" } else { " manager" } } else { "" }))
    #!/usr/bin/env bash
    set -uo pipefail
    export {{ with_gates }}
    tests='package(pillion-e2e) & test(/^{{ PREFIX }}/) & test(/::{{ TIER }}_/)'
    own='test(/^[a-z0-9_]*_own_bed::/)'
    run() { cargo nextest run --locked {{ e2e_packages }} --no-tests=pass --profile "$1" -E "$tests & $2"; }
    status=0
    shared=
    output=$(mktemp)
    trap 'kill $shared 2>/dev/null; rm "$output"' EXIT
    if cargo nextest list --locked {{ e2e_packages }} -E "$tests & not $own" | grep --quiet ::; then
        export -f run
        export tests own
        cargo run --quiet --locked --package pillion-testbed --bin bed -- run --node --fleet 10 --metrics -- \
            bash -c 'run e2e-shared "not $own"' >"$output" 2>&1 &
        shared=$!
    fi
    run e2e "$own & not ({{ alone }})" || status=$?
    wait $shared || status=$?
    cat "$output"
    run e2e-alone "$own & ({{ alone }})" || status=$?
    exit $status

# Format, lints and tests of the crates that differ from BASE. Under a minute for a change in a leaf crate.
quick BASE='main': (tools "gates")
    {{ with_gates }} cargo xtask quick {{ BASE }}

# The tier ci of the gate: everything that `.ci/run` runs, the quick steps first. Ends with the slowest entries.
ci:
    cargo xtask gate ci

# Goes on where an earlier run on the same commit stopped; `--fresh` begins anew. Exit code 1: a step failed; 4: tests were flaky.
# The tier nightly: every e2e test, large runs, fuzzing, a share of the mutants. With PREFIX, only e2e tests whose name starts with it.
nightly *PREFIX:
    cargo xtask gate nightly {{ PREFIX }}

# Write the times of the last run of the gate to docs/figures/ci-times-NAME.
ci-times NAME:
    cargo xtask ci-times {{ NAME }}

# Measure a published figure, arms interleaved: `just bench webhook`, `rollout`, `recommender`, `policies`. Give it a quiet machine; samples go to docs/figures.
bench *ARGS: (tools "bed" + (if ARGS =~ "recommender" { " bench" } else if ARGS =~ "policies" { " chart" } else { "" }))
    cargo build --release --locked --package pillion-testbed --bin bed --package pillion-manager --bin pillion-manager --package pillion-bench --bin bench
    cargo run --release --quiet --locked --package pillion-bench --bin bench -- {{ ARGS }}
