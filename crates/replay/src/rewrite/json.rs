//! URLs in import maps and web manifests.

use serde_json::Value;

use super::links::Links;
use crate::modifier::Modifier;

/// The deepest nesting of maps and lists that is read.
const MAX_DEPTH: usize = 16;

/// Members of a manifest that contain URLs.
const MANIFEST_URLS: [&str; 6] = ["src", "url", "start_url", "scope", "id", "action"];

/// Rewrites an import map: addresses, and specifiers that are URLs. `None` if nothing changes.
pub(crate) fn import_map(text: &[u8], links: &Links) -> Option<Vec<u8>> {
    let map: Value = serde_json::from_slice(text).ok()?;
    let new = mapped(&map, links, 0);
    (new != map).then(|| serde_json::to_vec(&new).ok()).flatten()
}

fn mapped(value: &Value, links: &Links, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(url(text, links, Modifier::Script)),
        Value::Object(members) if depth < MAX_DEPTH => members
            .iter()
            .map(|(key, value)| {
                (url(key, links, Modifier::Script), mapped(value, links, depth + 1))
            })
            .collect(),
        other => other.clone(),
    }
}

/// Rewrites a web manifest. `None` if nothing changes.
pub(crate) fn manifest(text: &[u8], links: &Links) -> Option<Vec<u8>> {
    let mut manifest: Value = serde_json::from_slice(text).ok()?;
    let before = manifest.clone();
    rewrite_members(&mut manifest, links, 0);
    (manifest != before).then(|| serde_json::to_vec(&manifest).ok()).flatten()
}

fn rewrite_members(value: &mut Value, links: &Links, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if MANIFEST_URLS.contains(&name.as_str()) => {
                        *text = url(text, links, Modifier::Object);
                    }
                    member => rewrite_members(member, links, depth + 1),
                }
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| rewrite_members(item, links, depth + 1));
        }
        _ => {}
    }
}

fn url(text: &str, links: &Links, modifier: Modifier) -> String {
    let new = links.rewrite(text.as_bytes(), modifier);
    new.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;

    fn links() -> Links {
        Links::new(0, Modifier::Page, CanonicalUrl::parse("http://e.com/a/").unwrap())
    }

    fn text(bytes: Option<Vec<u8>>) -> String {
        String::from_utf8(bytes.unwrap()).unwrap().replace("/web/19700101000000", "@")
    }

    #[test]
    fn import_maps_lead_into_the_archive() {
        let map = br#"{"imports":{"lit":"https://f.org/lit.js","x":"./x.js"}}"#;
        assert_eq!(
            text(import_map(map, &links())),
            r#"{"imports":{"lit":"@js_/https://f.org/lit.js","x":"./x.js"}}"#
        );
        assert_eq!(import_map(b"{not json", &links()), None);
    }

    #[test]
    fn manifests_lead_into_the_archive() {
        let manifest = br#"{"icons":[{"src":"/i.png"}],"name":"/n","start_url":"/"}"#;
        assert_eq!(
            text(super::manifest(manifest, &links())),
            r#"{"icons":[{"src":"@oe_/http://e.com/i.png"}],"name":"/n","start_url":"@oe_/http://e.com/"}"#
        );
        assert_eq!(super::manifest(br#"{"icons":[{"src":"i.png"}]}"#, &links()), None);
    }
}
