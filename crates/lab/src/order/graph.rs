use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::LabError;

/// The most pages in a graph file: ids are u32, and the arrays of an experiment must fit in memory.
const MAX_PAGES: u32 = 1 << 30;
/// The most links in a graph file, for the same reason.
const MAX_LINKS: u64 = u32::MAX as u64;
const MAGIC: &[u8; 8] = b"WGRAPH1\n";
/// The most text of URLs that is read.
const MAX_URL_TEXT_BYTES: u64 = 8 << 30;

/// A link graph: pages 0..n, each with its targets in the order of the page.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Where each page's targets begin, and the end of the last.
    starts: Vec<u32>,
    targets: Vec<u32>,
    /// The host of each page; empty when all are on one.
    hosts: Vec<u32>,
    /// Slashes and length of each URL; empty without URLs.
    shapes: Vec<(u16, u16)>,
    host_count: u32,
}

impl Graph {
    /// A graph from the targets of each page.
    #[must_use]
    pub fn from_links<L: AsRef<[u32]>>(links: impl IntoIterator<Item = L>) -> Self {
        let mut graph = Self { starts: vec![0], host_count: 1, ..Self::default() };
        for targets in links {
            graph.targets.extend_from_slice(targets.as_ref());
            graph.starts.push(graph.targets.len() as u32);
        }
        graph
    }

    pub(super) fn from_parts(starts: Vec<u32>, targets: Vec<u32>) -> Self {
        Self { starts, targets, host_count: 1, ..Self::default() }
    }

    /// Sets the host of each page; hosts are numbered from 0.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Vec<u32>) -> Self {
        assert_eq!(hosts.len(), self.pages(), "each page has a host");
        self.host_count = hosts.iter().max().map_or(1, |host| host + 1);
        self.hosts = hosts;
        self
    }

    /// Reads a `WGRAPH1` file and, if given, the URLs that belong to it.
    ///
    /// # Errors
    /// [`LabError::File`] when a file cannot be read, [`LabError::BadGraph`] when it is not such a
    /// file or the URLs do not belong to it.
    pub fn read(edges: &Path, urls: Option<&Path>) -> Result<Self, LabError> {
        let mut graph = read_edges(edges)?;
        if let Some(urls) = urls {
            graph.read_urls(urls)?;
        }
        Ok(graph)
    }

    /// How many pages there are.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many links there are.
    #[must_use]
    pub fn links(&self) -> usize {
        self.targets.len()
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.host_count
    }

    /// The targets of a page, in the order of the page.
    #[must_use]
    pub fn targets(&self, page: u32) -> &[u32] {
        let (start, end) = (self.starts[page as usize], self.starts[page as usize + 1]);
        &self.targets[start as usize..end as usize]
    }

    /// The host of a page.
    #[must_use]
    pub fn host(&self, page: u32) -> u32 {
        self.hosts.get(page as usize).copied().unwrap_or(0)
    }

    /// Slashes and length of a page's URL, 0 when unknown.
    #[must_use]
    pub fn url_shape(&self, page: u32) -> (u16, u16) {
        self.shapes.get(page as usize).copied().unwrap_or((0, 0))
    }

    /// The pages that can be reached from a page, in the order of their ids.
    #[must_use]
    pub fn reachable(&self, start: u32) -> Vec<u32> {
        let mut is_reached = vec![false; self.pages()];
        let mut stack = vec![start];
        is_reached[start as usize] = true;
        while let Some(page) = stack.pop() {
            for target in self.targets(page) {
                if !std::mem::replace(&mut is_reached[*target as usize], true) {
                    stack.push(*target);
                }
            }
        }
        (0..self.pages() as u32).filter(|page| is_reached[*page as usize]).collect()
    }

    fn read_urls(&mut self, path: &Path) -> Result<(), LabError> {
        let file = File::open(path).map_err(LabError::file("read", path))?;
        let mut text = String::new();
        zstd::Decoder::new(file)
            .and_then(|decoder| decoder.take(MAX_URL_TEXT_BYTES).read_to_string(&mut text))
            .map_err(LabError::file("read", path))?;
        let mut host_numbers = std::collections::BTreeMap::new();
        let mut hosts = Vec::with_capacity(self.pages());
        for url in text.lines() {
            let next = host_numbers.len() as u32;
            hosts.push(*host_numbers.entry(host_of(url)).or_insert(next));
            let slashes = url.bytes().filter(|byte| *byte == b'/').count();
            self.shapes.push((clamp_u16(slashes), clamp_u16(url.len())));
        }
        if hosts.len() != self.pages() {
            return Err(LabError::BadGraph {
                path: path.into(),
                reason: format!("{} URLs for {} pages", hosts.len(), self.pages()),
            });
        }
        self.host_count = host_numbers.len() as u32;
        self.hosts = hosts;
        Ok(())
    }
}

fn clamp_u16(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// The host of a URL: the text between `//` and the next `/`.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("//").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn read_edges(path: &Path) -> Result<Graph, LabError> {
    let file = File::open(path).map_err(LabError::file("read", path))?;
    let decoder = zstd::Decoder::new(file).map_err(LabError::file("read", path))?;
    let mut reader = EdgeReader { input: BufReader::new(decoder), path };
    reader.graph()
}

/// Reads the numbers of a `WGRAPH1` stream.
struct EdgeReader<'a, R> {
    input: R,
    path: &'a Path,
}

impl<R: Read> EdgeReader<'_, R> {
    fn graph(&mut self) -> Result<Graph, LabError> {
        let mut magic = [0; 8];
        self.fill(&mut magic)?;
        if &magic != MAGIC {
            return Err(self.bad("it does not begin with WGRAPH1"));
        }
        let mut pages = [0; 4];
        let mut links = [0; 8];
        self.fill(&mut pages)?;
        self.fill(&mut links)?;
        let (pages, links) = (u32::from_le_bytes(pages), u64::from_le_bytes(links));
        if pages > MAX_PAGES || links > MAX_LINKS {
            return Err(self.bad("it has more than 2^30 pages or 2^32 links"));
        }
        let mut graph = Graph { starts: vec![0], host_count: 1, ..Graph::default() };
        for page in 0..pages {
            self.page(page, pages, links, &mut graph)?;
        }
        if graph.targets.len() as u64 != links {
            return Err(self.bad("it has fewer links than its head says"));
        }
        Ok(graph)
    }

    fn page(
        &mut self,
        page: u32,
        pages: u32,
        links: u64,
        graph: &mut Graph,
    ) -> Result<(), LabError> {
        let count = self.leb128()?;
        if graph.targets.len() as u64 + count > links {
            return Err(self.bad("it has more links than its head says"));
        }
        let mut previous = i64::from(page);
        for _ in 0..count {
            let zigzag = self.leb128()?;
            let delta = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            previous = previous.saturating_add(delta);
            let target = u32::try_from(previous).ok().filter(|target| *target < pages);
            graph.targets.push(
                target.ok_or_else(|| self.bad("a link leads to a page that is not in the file"))?,
            );
        }
        graph.starts.push(graph.targets.len() as u32);
        Ok(())
    }

    fn leb128(&mut self) -> Result<u64, LabError> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let mut byte = [0];
            self.fill(&mut byte)?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.bad("a number is longer than 35 bits"))
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), LabError> {
        self.input.read_exact(buffer).map_err(LabError::file("read", self.path))
    }

    fn bad(&self, reason: &str) -> LabError {
        LabError::BadGraph { path: self.path.into(), reason: reason.into() }
    }
}
