//! Many sites at once: addresses line by line, a CSV table, or an OPML file of feeds.

use nenrin_urls::CanonicalUrl;

/// The longest list that is read.
pub const BULK_BYTES_MAX: usize = 256 << 10;
/// The most addresses in one list.
pub const BULK_ADDRESSES_MAX: usize = 1_000;

/// A site of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkSite {
    /// The line of the list, from 1.
    pub line: usize,
    /// Its address.
    pub url: CanonicalUrl,
    /// Its name; empty for none.
    pub name: String,
    /// Its group; empty for none.
    pub group: String,
    /// Its tags, with commas between.
    pub tags: String,
}

/// The sites of a list, and what is wrong by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BulkList {
    /// In the order of the list, without repetitions.
    pub sites: Vec<BulkSite>,
    /// Line and reason.
    pub errors: Vec<(usize, String)>,
}

/// Reads a list: OPML if it begins with `<`, a CSV table if its first line has the column `url`, and
/// otherwise one address in each line. In a CSV the columns `name`, `group` and `tags` are used too;
/// tags are separated by `;`.
pub fn read_bulk(text: &str) -> BulkList {
    let mut list = BulkList::default();
    if text.len() > BULK_BYTES_MAX {
        list.errors.push((1, format!("the list is longer than {} kB", BULK_BYTES_MAX >> 10)));
        return list;
    }
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('<') {
        read_opml(text, &mut list);
    } else {
        read_lines(text, &mut list);
    }
    list
}

impl BulkList {
    fn add(&mut self, line: usize, address: &str, name: &str, group: &str, tags: &str) {
        let found = match CanonicalUrl::parse_typed(address) {
            Ok(url) if !url.host().contains('.') && !url.is_on_private_network() => Err(format!(
                "`{address}` is not a web address; write one like https://example.com/"
            )),
            Ok(url) => Ok(url),
            Err(error) => Err(error.to_string()),
        };
        match found {
            Err(error) => self.errors.push((line, error)),
            Ok(_) if self.sites.len() >= BULK_ADDRESSES_MAX => {
                self.errors.push((line, format!("at most {BULK_ADDRESSES_MAX} addresses at once")));
            }
            Ok(url) if self.sites.iter().any(|site| site.url == url) => {}
            Ok(url) => self.sites.push(BulkSite {
                line,
                url,
                name: name.trim().to_owned(),
                group: group.trim().to_owned(),
                tags: tags.replace(';', ","),
            }),
        }
    }

    fn is_full(&self) -> bool {
        self.sites.len() + self.errors.len() > 2 * BULK_ADDRESSES_MAX
    }
}

fn read_lines(text: &str, list: &mut BulkList) {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()).peekable();
    let columns = lines.peek().map(|(line, _)| csv_fields(line)).unwrap_or_default();
    let place = |name: &str| columns.iter().position(|c| c.trim().eq_ignore_ascii_case(name));
    let Some(url_at) = place("url").or_else(|| place("address")) else {
        for (line, number) in lines {
            let address = line.trim();
            if list.is_full() {
                return;
            }
            if !address.starts_with('#') {
                list.add(number, address, "", "", "");
            }
        }
        return;
    };
    let (name_at, group_at, tags_at) = (place("name"), place("group"), place("tags"));
    for (line, number) in lines.skip(1) {
        if list.is_full() {
            return;
        }
        let fields = csv_fields(line);
        let field = |at: Option<usize>| at.and_then(|at| fields.get(at)).map_or("", String::as_str);
        list.add(
            number,
            field(Some(url_at)).trim(),
            field(name_at),
            field(group_at),
            field(tags_at),
        );
    }
}

/// The fields of a line of CSV; a quoted field may hold commas and doubled quotes.
fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let field = match fields.last_mut() {
            Some(field) => field,
            None => return fields,
        };
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' | '\t' if !quoted => fields.push(String::new()),
            c => field.push(c),
        }
    }
    fields
}

/// Every `<outline>` with an address: the site of a feed, or else the feed itself.
fn read_opml(text: &str, list: &mut BulkList) {
    let mut line = 1;
    let mut rest = text;
    while let Some(at) = rest.find("<outline") {
        line += rest[..at].matches('\n').count();
        rest = &rest[at..];
        let Some(end) = rest.find('>') else {
            list.errors.push((line, "this element has no end".to_owned()));
            return;
        };
        let tag = &rest[..end];
        let value = |name| attribute(tag, name).unwrap_or_default();
        let address = Some(value("htmlUrl")).filter(|url| !url.is_empty());
        let address = address.unwrap_or_else(|| value("xmlUrl"));
        if list.is_full() {
            return;
        }
        if !address.is_empty() {
            let name = Some(value("title")).filter(|name| !name.is_empty());
            list.add(line, &address, &name.unwrap_or_else(|| value("text")), "", "");
        }
        line += tag.matches('\n').count();
        rest = &rest[end..];
    }
}

/// The value of an XML attribute with its references decoded.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = tag;
    while let Some(at) = rest.find(name) {
        let is_name = rest[..at].ends_with(char::is_whitespace);
        let after = rest[at + name.len()..].trim_start();
        if is_name && let Some(value) = after.strip_prefix('=').map(str::trim_start) {
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, _) = value[1..].split_once(quote)?;
            let decoded = value
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&apos;", "'")
                .replace("&amp;", "&");
            return Some(decoded);
        }
        rest = &rest[at + name.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(list: &BulkList) -> Vec<String> {
        list.sites.iter().map(|site| site.url.to_string()).collect()
    }

    #[test]
    fn lines_are_read_and_wrong_ones_are_named() {
        let list = read_bulk(
            "\u{feff}example.org\n\n# a note\nhttps://b.com/x\nnot a url\nexample.org/\nword\n",
        );
        assert_eq!(urls(&list), ["https://example.org/", "https://b.com/x"]);
        let lines: Vec<usize> = list.errors.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 7]);
    }

    #[test]
    fn a_table_has_names_groups_and_tags() {
        let list = read_bulk("name,url,tags,group\n\"Tea, green\",tea.org,a;b,Food\n,ftp://x,,\n");
        assert_eq!(urls(&list), ["https://tea.org/"]);
        let site = &list.sites[0];
        let shown = (site.line, site.name.as_str(), site.group.as_str(), site.tags.as_str());
        assert_eq!(shown, (2, "Tea, green", "Food", "a,b"));
        assert_eq!(list.errors[0].0, 3);
    }

    #[test]
    fn feeds_of_an_opml_file_become_sites() {
        let opml = "<?xml version=\"1.0\"?>\n<opml><body><outline text=\"Folder\">\n\
            <outline type=\"rss\" text='A &amp; B' xmlUrl=\"https://a.org/feed\" htmlUrl=\"https://a.org/\"/>\n\
            <outline text=\"C\" xmlUrl=\"https://c.org/feed?x=1&amp;y=2\"/>\n<outline xmlUrl=\"nothing\"/>\n</outline></body></opml>";
        let list = read_bulk(opml);
        assert_eq!(urls(&list), ["https://a.org/", "https://c.org/feed?x=1&y=2"]);
        assert_eq!(list.sites[0].name, "A & B");
        assert_eq!(list.errors[0].0, 5);
    }

    #[test]
    fn a_list_is_bounded() {
        let long = "a.org\n".repeat(BULK_BYTES_MAX);
        assert!(read_bulk(&long).sites.is_empty());
        let many: String = (0..1_200).map(|n| format!("a{n}.org\n")).collect();
        let list = read_bulk(&many);
        assert_eq!((list.sites.len(), list.errors.len()), (BULK_ADDRESSES_MAX, 200));
    }

    proptest::proptest! {
        #[test]
        fn no_list_breaks_it(text in "(<outline |xmlUrl=|htmlUrl=|\"|'|>|,|\\n|url|a\\.org|\\PC){0,40}") {
            let _ = read_bulk(&text);
        }
    }
}
