//! Our scripts for replayed pages and their workers.

use std::sync::LazyLock;

const STEADY: &str = include_str!("assets/steady.js");
const ADDRESSES: &str = include_str!("assets/addresses.js");
const TEXTS: &str = include_str!("assets/texts.js");
const WORKER: &str = include_str!("assets/worker.js");
const CLIENT: &str = include_str!("assets/client.js");

/// Our script for pages, with the parts that it shares with workers.
pub(crate) static CLIENT_JS: LazyLock<String> = LazyLock::new(|| {
    let parts =
        [("steady", STEADY), ("addresses", ADDRESSES), ("texts", TEXTS), ("inWorker", WORKER)];
    let parts: String =
        parts.map(|(name, text)| format!("const {name} = {}\n", expression(text))).concat();
    format!("(() => {{\n\"use strict\";\n{parts}{CLIENT}\n}})();\n")
});

fn expression(text: &'static str) -> String {
    // The comment in front is not part of it.
    let start =
        text.lines().take_while(|line| line.starts_with("//")).map(|line| line.len() + 1).sum();
    format!("{};", text[start..].trim())
}

/// A script that makes time and chance of a page repeatable, to be run before any other: its clock
/// starts at a moment, in milliseconds since the epoch, and its random numbers follow from a seed.
pub fn steady_script(start_ms: i64, seed: u32) -> String {
    format!("({})(globalThis,{start_ms},{seed});", expression(STEADY).trim_end_matches(';'))
}

/// What comes before the first line of a worker's script; `page` says what the page is, as JSON.
pub(crate) fn worker_start(page: &serde_json::Value) -> String {
    let [steady, addresses, texts, worker] = [STEADY, ADDRESSES, TEXTS, WORKER]
        .map(|text| expression(text).trim_end_matches(';').to_owned());
    let text = format!("({worker})({steady},{addresses},{texts},{page});");
    // Lines keep their numbers.
    let lines = text.lines().map(|line| line.split(" // ").next().unwrap_or_default().trim());
    lines.filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_worker_is_one_line() {
        let start = worker_start(&serde_json::json!({"at": "20240101000000"}));
        assert!(
            !start.contains('\n') && start.ends_with("{\"at\":\"20240101000000\"});"),
            "{start}"
        );
        assert!(steady_script(5, 7).ends_with("(globalThis,5,7);"));
        assert!(CLIENT_JS.starts_with("(() => {\n\"use strict\";\nconst steady = (view"));
    }
}
