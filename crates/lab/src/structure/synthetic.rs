//! Generated servers: many personal pages, whose tops announce changes or do not.

use nenrin_structure::directory_of;
use sha2::{Digest as _, Sha256};

use crate::structure::history::{PageVisit, RoundHistory, SiteHistory, SiteVisit};

/// A web of servers with personal homepages, as providers and universities had.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticWeb {
    /// The number of servers.
    pub servers: usize,
    /// People on each.
    pub people: usize,
    /// Pages of each person beside the top.
    pub pages: usize,
    /// The number of visits to every page.
    pub visits: usize,
    /// The chance that a person edits anything between two visits.
    pub active: f64,
    /// The chance that a page changes when its owner is active; a tenth of it when not.
    pub edit: f64,
    /// Whether a person's top, and the server's, change whenever something below does; otherwise
    /// tops change like other pages, on their own.
    pub tops_announce: bool,
    /// The seed for everything.
    pub seed: u64,
}

impl Default for SyntheticWeb {
    fn default() -> Self {
        Self {
            servers: 40,
            people: 12,
            pages: 8,
            visits: 6,
            active: 0.15,
            edit: 0.35,
            tops_announce: true,
            seed: 1,
        }
    }
}

impl SyntheticWeb {
    /// The history of its visits.
    #[must_use]
    pub fn history(&self) -> RoundHistory {
        let sites = (0..self.servers).map(|server| self.site(server as u64)).collect();
        RoundHistory { sites }
    }

    fn site(&self, server: u64) -> SiteHistory {
        let mut chance = Chance { seed: self.seed, server, draws: 0 };
        let mut versions: Vec<(String, u32)> = self.paths();
        let visits = (0..self.visits as i64)
            .map(|visit| {
                if visit > 0 {
                    self.edit(&mut versions, &mut chance);
                }
                let at_s = visit * 7 * 86_400;
                let pages = versions
                    .iter()
                    .map(|(path, version)| (path.clone(), self.page(server, path, *version)));
                SiteVisit { at_s, pages: pages.collect() }
            })
            .collect();
        SiteHistory {
            name: format!("server-{server}"),
            kind: if self.tops_announce { "announcing" } else { "silent" }.to_owned(),
            top: "index.html".to_owned(),
            visits,
        }
    }

    /// The server's top, a list of people, and each person's top and pages.
    fn paths(&self) -> Vec<(String, u32)> {
        let mut paths = vec!["index.html".to_owned()];
        for person in 0..self.people {
            paths.push(format!("~p{person}/index.html"));
            paths.extend((0..self.pages).map(|page| format!("~p{person}/{}.html", name(page))));
        }
        paths.into_iter().map(|path| (path, 0)).collect()
    }

    fn edit(&self, versions: &mut [(String, u32)], chance: &mut Chance) {
        let mut server_changed = false;
        for person in versions[1..].chunks_mut(self.pages + 1) {
            let active = chance.happens(self.active);
            let edit = if active { self.edit } else { self.edit / 10.0 };
            let mut person_changed = false;
            let (top, pages) = person.split_at_mut(1);
            for (_, version) in pages {
                let changes = chance.happens(edit);
                *version += u32::from(changes);
                person_changed |= changes;
            }
            // Small edits of those who are hardly active are not announced.
            let announced = person_changed && active;
            let top_changes =
                if self.tops_announce { announced } else { chance.happens(self.active) };
            top[0].1 += u32::from(top_changes);
            server_changed |= top_changes;
        }
        let top_changes =
            if self.tops_announce { server_changed } else { chance.happens(self.active) };
        versions[0].1 += u32::from(top_changes);
    }

    fn page(&self, server: u64, path: &str, version: u32) -> PageVisit {
        let links = if path == "index.html" {
            (0..self.people).map(|person| format!("~p{person}/index.html")).collect()
        } else if path.ends_with("/index.html") {
            let home = directory_of(path);
            (0..self.pages).map(|page| format!("{home}{}.html", name(page))).collect()
        } else {
            vec![format!("{}index.html", directory_of(path))]
        };
        let digest = Sha256::digest(format!("{server} {path} {version}")).into();
        PageVisit { digest, links, ..PageVisit::default() }
    }
}

/// Names without digits, so that pages form no family.
fn name(page: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    format!("{}{}", letter(page), letter(page / 26))
}

struct Chance {
    seed: u64,
    server: u64,
    draws: u64,
}

impl Chance {
    fn happens(&mut self, probability: f64) -> bool {
        self.draws += 1;
        let mut hash = Sha256::new();
        for number in [self.seed, self.server, self.draws] {
            hash.update(number.to_le_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let draw = u64::from_le_bytes([
            digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], 0,
        ]);
        (draw as f64) < probability * (1u64 << 56) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::methods::{Method, Tally, count, sum, visits};
    use crate::structure::prepared::{Site, prepare};

    fn tally(sites: &[Site], method: Method) -> Tally {
        let mut total = Tally::default();
        for from in 0..sites[0].visits.len() - 1 {
            total.add(sum(&count(sites, from, from + 1, &visits(method, sites, from, from + 1))));
        }
        total
    }

    #[test]
    fn where_tops_announce_the_papers_order_holds() {
        let sites = prepare(&SyntheticWeb::default().history()).unwrap();
        let [all, a, b, c] = [Method::Everything, Method::A, Method::B, Method::C]
            .map(|method| tally(&sites, method));
        assert!(c.update_rate() > b.update_rate());
        assert!(b.update_rate() >= a.update_rate());
        assert!(a.update_rate() > 1.5 * all.update_rate());
        assert!(all.coverage() > a.coverage() && a.coverage() >= b.coverage());
        assert!(b.coverage() >= c.coverage() && c.coverage() > 0.5);
    }

    #[test]
    fn where_tops_are_silent_they_say_nothing_about_members() {
        let web = SyntheticWeb { tops_announce: false, ..SyntheticWeb::default() };
        let sites = prepare(&web.history()).unwrap();
        let all = tally(&sites, Method::Everything);
        let a = tally(&sites, Method::A);
        // Tops are edited at another rate than members: what counts is the members' rate.
        let tops = sites.len() * (web.people + 1) * (web.visits - 1);
        let members = |tally: Tally, top_changes: usize| {
            (tally.found - top_changes) as f64 / (tally.visits - tops) as f64
        };
        let top_changes: usize = (0..web.visits - 1)
            .flat_map(|from| {
                sites.iter().map(move |site| {
                    let is_top = |page: &&nenrin_structure::PageIndex| {
                        site.paths[page.0 as usize].ends_with("index.html")
                    };
                    let reached = site.visits[from].reached.iter().filter(is_top);
                    reached.filter(|&&page| site.is_changed(from, from + 1, page)).count()
                })
            })
            .sum();
        let ratio = members(a, top_changes) / members(all, top_changes);
        assert!((0.8..1.25).contains(&ratio), "members under changed tops: {ratio}");
    }
}
