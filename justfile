# Everything that people do with this repository. `just` lists it; each line also works alone.

_list:
    @just --list

# Collect and serve http://127.0.0.1:8080/
run *ARGS:
    cargo run --release -- run {{ARGS}}

# Formatting, lints and all tests; installs what they need
test:
    scripts/test

# The tests of one crate, such as `just crate revisit`
crate NAME *ARGS:
    cargo nextest run -p nenrin-{{NAME}} {{ARGS}}

# Tarball and Debian package in target/dist
release *ARGS:
    scripts/release {{ARGS}}

# Man pages, completions, commands, exit codes, settings, metrics and the API as files
reference DIR:
    cargo run --release -- reference -o {{DIR}}

# Instructions of fixed jobs, compared with scripts/instructions.tsv
instructions:
    scripts/count-instructions --check

# Speed of collecting, compared with wget2 and wget
bench-crawl *ARGS:
    scripts/bench-crawl {{ARGS}}

# Speed of replay, compared with pywb
bench-replay *ARGS:
    scripts/bench-replay {{ARGS}}

# Kill the program in the middle of its work, again and again
kill-many WORK COUNT="200":
    scripts/kill-many {{WORK}} {{COUNT}}

# Let the fuzzer run on every check for so many seconds
fuzz SECONDS *CHECKS:
    scripts/fuzz {{SECONDS}} {{CHECKS}}
