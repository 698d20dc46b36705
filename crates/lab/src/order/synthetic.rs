use super::Graph;
use super::shapes::{chain_web, power_law_web};

/// The kind of a generated web.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebKind {
    /// Many servers with navigation and directories; sizes, degrees and popularity by power laws.
    #[default]
    Servers,
    /// One server, popularity by preferential attachment and nothing else.
    PowerLaw,
    /// One server with long chains and hubs that link to nothing.
    Chains,
}

impl std::str::FromStr for WebKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "servers" => Ok(Self::Servers),
            "power-law" => Ok(Self::PowerLaw),
            "chains" => Ok(Self::Chains),
            _ => Err("write servers, power-law or chains".to_owned()),
        }
    }
}

/// Parameters of a generated web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticWeb {
    /// Its kind.
    pub kind: WebKind,
    /// Number of pages, at least.
    pub pages: u32,
    /// The seed; the same seed gives the same web.
    pub seed: u64,
}

/// The most links of one page.
const MAX_LINKS: usize = 250;
/// Children that a page introduces, so that each page of a server can be reached from its home.
const CHILDREN: u32 = 4;
/// Homes that each home introduces, so that every server can be reached.
const NEXT_HOMES: u32 = 8;
/// Pages per directory.
const DIRECTORY: u32 = 20;

/// Generates a web. A crawl starts at page 0.
#[must_use]
pub fn synthetic_web(web: &SyntheticWeb) -> Graph {
    match web.kind {
        WebKind::Servers => server_web(web.pages, web.seed),
        WebKind::PowerLaw => power_law_web(web.pages, web.seed),
        WebKind::Chains => chain_web(web.pages, web.seed),
    }
}

/// A web of many servers: sizes, degrees and popularity follow power laws; pages of a server share
/// its navigation and link within their directory; few links lead to other servers, most of them
/// to home pages. Page 0 is a portal from which all can be reached.
fn server_web(pages: u32, seed: u64) -> Graph {
    let mut random = Random(seed);
    let homes = homes(pages, &mut random);
    let pages = homes.last().copied().unwrap_or(0);
    let mut links = Links {
        starts: Vec::with_capacity(pages as usize + 1),
        targets: Vec::with_capacity(pages as usize * 10),
    };
    let mut hosts = Vec::with_capacity(pages as usize);
    for server in 0..homes.len() as u32 - 1 {
        let shape = ServerShape::new(&homes, server, &mut random);
        for page in 0..shape.size {
            links.start_page();
            shape.link_page(page, &homes, &mut links, &mut random);
            hosts.push(server);
        }
    }
    links.start_page();
    Graph::from_parts(links.starts, links.targets).with_hosts(hosts)
}

/// The first page of each server, and the end of the last.
fn homes(pages: u32, random: &mut Random) -> Vec<u32> {
    let mut homes = vec![0];
    let mut next = 0;
    while next < pages {
        let size = random.power_law(4.0, 0.9).min(f64::from(pages / 50 + 1)) as u32;
        next += size.max(1);
        homes.push(next);
    }
    homes
}

struct ServerShape {
    server: u32,
    home: u32,
    size: u32,
    /// How many pages are in the navigation, and how many of the server's pages have it.
    navigation: u32,
    discipline: f64,
    /// Odd; spreads popular pages over the server, so that being popular does not mean being
    /// found early.
    spread: u32,
}

impl ServerShape {
    fn new(homes: &[u32], server: u32, random: &mut Random) -> Self {
        let home = homes[server as usize];
        let size = homes[server as usize + 1] - home;
        let navigation = (1 + random.below(12)).min(size);
        let spread = random.below(1 << 20) * 2 + 1;
        Self { server, home, size, navigation, discipline: random.fraction(), spread }
    }

    /// The page with this rank in popularity; the home is the first.
    fn popular(&self, rank: u32) -> u32 {
        (u64::from(rank) * u64::from(self.spread) % u64::from(self.size)) as u32
    }

    fn link_page(&self, page: u32, homes: &[u32], links: &mut Links, random: &mut Random) {
        let own = self.home + page;
        let first_child = page.saturating_mul(CHILDREN) + 1;
        let is_leaf = first_child >= self.size;
        if is_leaf && page > 0 && random.fraction() < 0.15 {
            return;
        }
        for child in first_child..first_child.saturating_add(CHILDREN).min(self.size) {
            links.add(own, self.home + child);
        }
        if page > 0 && random.fraction() < self.discipline {
            for rank in 0..self.navigation {
                links.add(own, self.home + self.popular(rank));
            }
        }
        let directory = page / DIRECTORY * DIRECTORY;
        for _ in 0..random.power_law(2.0, 1.2).min(100.0) as u32 {
            let near = directory + random.below(DIRECTORY);
            let far = self.popular((random.fraction().powi(3) * f64::from(self.size)) as u32);
            let target = if random.fraction() < 0.6 { near } else { far };
            if target < self.size {
                links.add(own, self.home + target);
            }
        }
        self.link_outwards(page, homes, links, random);
    }

    fn link_outwards(&self, page: u32, homes: &[u32], links: &mut Links, random: &mut Random) {
        let own = self.home + page;
        let servers = homes.len() as u32 - 1;
        let mut outward = if random.fraction() < 0.04 { 1 + random.below(10) } else { 0 };
        if page == 0 {
            let first = self.server.saturating_mul(NEXT_HOMES) + 1;
            for next in first..first.saturating_add(NEXT_HOMES).min(servers) {
                links.add(own, homes[next as usize]);
            }
            outward += random.below(6);
        }
        for _ in 0..outward {
            // Popularity by power law over the servers, in an order unrelated to their numbers.
            let rank = (random.fraction().powi(4) * f64::from(servers)) as u64;
            let server = (rank.wrapping_mul(0x9e37_79b9) % u64::from(servers)) as usize;
            let size = homes[server + 1] - homes[server];
            let inside = if random.fraction() < 0.8 { 0 } else { random.below(size) };
            links.add(own, homes[server] + inside);
        }
    }
}

struct Links {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Links {
    fn start_page(&mut self) {
        self.starts.push(self.targets.len() as u32);
    }

    /// Adds a link, unless it leads to the page itself or was there before.
    fn add(&mut self, page: u32, target: u32) {
        let start = self.starts.last().map_or(0, |start| *start as usize);
        let own = &self.targets[start..];
        if target != page && own.len() < MAX_LINKS && !own.contains(&target) {
            self.targets.push(target);
        }
    }
}

/// SplitMix64: small, seeded, the same everywhere.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 to below 1.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from `least` upwards with P(larger than x) = (least / x)^exponent.
    pub(super) fn power_law(&mut self, least: f64, exponent: f64) -> f64 {
        least * (1.0 - self.fraction()).powf(-1.0 / exponent)
    }
}

/// Scatters the bits of a number over 64.
fn mix(number: u64) -> u64 {
    let mut bits = number;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_can_be_reached_from_the_portal() {
        let graph = server_web(20_000, 7);
        assert!(graph.pages() >= 20_000);
        assert_eq!(graph.reachable(0).len(), graph.pages());
    }

    #[test]
    fn it_has_many_servers_and_about_ten_links_a_page() {
        let graph = server_web(50_000, 1);
        let links_per_page = graph.links() as f64 / graph.pages() as f64;
        assert!((7.0..13.0).contains(&links_per_page), "{links_per_page}");
        assert!(graph.hosts() > 1_000, "{}", graph.hosts());
    }

    #[test]
    fn a_seed_makes_the_same_web_and_another_seed_another() {
        let web = |seed| server_web(3_000, seed);
        let links = |graph: &Graph| (0..3_000).flat_map(|p| graph.targets(p).to_vec()).collect();
        let first: Vec<u32> = links(&web(1));
        assert_eq!(first, links(&web(1)));
        assert_ne!(first, links(&web(2)));
    }

    #[test]
    fn no_page_links_to_itself_or_twice() {
        let graph = server_web(5_000, 3);
        for page in 0..graph.pages() as u32 {
            let mut targets = graph.targets(page).to_vec();
            assert!(!targets.contains(&page));
            let count = targets.len();
            targets.sort_unstable();
            targets.dedup();
            assert_eq!(targets.len(), count, "page {page}");
        }
    }
}
