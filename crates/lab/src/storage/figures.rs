//! The page that shows the experiment: the paper's table and figures by their numbers.

use std::collections::BTreeMap;

use super::{OtherWay, Overlap, Results, SiteResults, Split, StepBytes, Took};
use crate::report::{Axis, Plot, Report, Series, Table};

/// Paper 001's own figures, shown beside ours.
const PAPER_SHARE: &str = "23.9%";
const OURS: &str = "Nenrin";
const STEPS: [&str; 5] =
    ["raw", "file in time", "file in space", "block in time", "block in space"];

pub(crate) fn report(results: &Results) -> Report {
    let mut report = Report::new(
        "Every version in almost no space",
        "Paper 001: differential storage of websites, our archive compared with other ways of storing the \
         same visits",
    );
    corpus(&mut report, results);
    ways(&mut report, results);
    genres(&mut report, results);
    visits(&mut report, results);
    steps(&mut report, results);
    times(&mut report, results);
    if let Some(overlap) = &results.overlap {
        overlaps(&mut report, overlap);
    }
    report
}

fn mb(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

fn share(bytes: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * bytes as f64 / of as f64 }
}

/// With three digits, so that 1.83 and 43.9 can both be read.
fn percent(bytes: u64, of: u64) -> String {
    match share(bytes, of) {
        _ if of == 0 => "–".to_owned(),
        share if share < 9.995 => format!("{share:.2}%"),
        share => format!("{share:.1}%"),
    }
}

fn percent_axis(label: &str) -> Axis {
    Axis::linear(format!("{label} (%)")).from(0.0)
}

fn raw(site: &SiteResults) -> Split {
    site.raw.iter().copied().sum()
}

fn corpus(report: &mut Report, results: &Results) {
    let mut table = Table::new([
        "site",
        "genre",
        "visits",
        "files",
        "raw MB",
        "HTML MB",
        "other MB",
        "stored MB",
        "of raw",
        "HTML",
        "other",
    ])
    .caption("What was collected, and what is stored of it after compact (table 1)");
    let mut row = |head: [String; 4], raw: Split, stored: u64, content: Split| {
        let cells = head.into_iter().chain([
            mb(raw.total()),
            mb(raw.html),
            mb(raw.other),
            mb(stored),
            percent(stored, raw.total()),
            percent(content.html, raw.html),
            percent(content.other, raw.other),
        ]);
        table.push(cells);
    };
    for site in &results.sites {
        let (visits, files) = (site.raw.len().to_string(), site.files.to_string());
        let sizes = site.ours.compacted;
        row(
            [site.site.clone(), site.genre.clone(), visits, files],
            raw(site),
            sizes.total(),
            sizes.content,
        );
    }
    let files: usize = results.sites.iter().map(|site| site.files).sum();
    let all = &results.ours.compacted;
    let head = ["all, with indexes and state".to_owned(), String::new(), String::new()];
    let [name, genre, visits] = head;
    row([name, genre, visits, files.to_string()], results.raw, all.files, all.content);
    table.strong();
    report.section("What was collected").table(&table);
    let identical = match results.ours.is_identical {
        true => "Every visit was rebuilt from the archive and is byte for byte what was given."
            .to_owned(),
        false => format!("NOT every visit came back as it was: {:?}", results.ours.differences),
    };
    report.paragraph(format!(
        "A site's row holds its content and records in the packs; the last row holds all files of \
         the archive, with the index of the packs ({} MB with them) and the state. Paper 001 stored \
         {PAPER_SHARE} of its 15 sites × 5 visits (HTML 38.4%, other files 20.6%), blocks \
         uncompressed. {identical}",
        mb(all.store)
    ));
}

/// All sites together, way by way, smallest last.
fn summed(results: &Results) -> Vec<OtherWay> {
    let mut sums: Vec<OtherWay> = Vec::new();
    for way in results.sites.iter().flat_map(|site| &site.others.ways) {
        match sums.iter_mut().find(|sum| sum.name == way.name) {
            None => sums.push(way.clone()),
            Some(sum) => {
                sum.bytes += way.bytes;
                sum.took += way.took;
                sum.split = sum.split.zip(way.split).map(|(a, b)| [a, b].into_iter().sum());
                for (place, bytes) in way.by_visit.iter().enumerate() {
                    match sum.by_visit.get_mut(place) {
                        Some(so_far) => *so_far += bytes,
                        None => sum.by_visit.push(*bytes),
                    }
                }
            }
        }
    }
    sums.sort_by_key(|way| std::cmp::Reverse(way.bytes));
    sums
}

fn paper(sites: &[SiteResults]) -> (StepBytes, StepBytes) {
    let html = sites.iter().flat_map(|site| site.others.paper_html.iter().copied()).sum();
    let other = sites.iter().flat_map(|site| site.others.paper_other.iter().copied()).sum();
    (html, other)
}

/// A line of the comparison: name, bytes, by kind, one page at once, time.
pub(crate) type Line = (String, u64, Option<Split>, bool, Option<Took>);

pub(crate) fn lines(results: &Results) -> Vec<Line> {
    let (html, other) = paper(&results.sites);
    let steps = Split { html: html.block_in_space, other: other.block_in_space };
    let mut lines: Vec<Line> = summed(results)
        .into_iter()
        .map(|way| (way.name, way.bytes, way.split, way.is_random_access, Some(way.took)))
        .collect();
    lines.push(("paper 001, four steps".to_owned(), steps.total(), Some(steps), true, None));
    let ours = &results.ours;
    let mut collect = Took::default();
    for took in results.sites.iter().flat_map(|site| &site.ours.collect) {
        collect += *took;
    }
    let mut ready = collect;
    ready += ours.compact;
    for (when, sizes, took) in
        [("collected", &ours.collected, collect), ("compacted", &ours.compacted, ready)]
    {
        let name = format!("{OURS}, {when}");
        lines.push((name, sizes.files, Some(sizes.content), true, Some(took)));
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.1));
    lines
}

fn ways(report: &mut Report, results: &Results) {
    let raw = results.raw;
    let lines = lines(results);
    let mut table =
        Table::new(["way", "MB", "of raw", "HTML", "other", "one page at once", "time s", "CPU s"])
            .caption("Every way of storing all visits (fig. 7)");
    for (name, bytes, split, is_random_access, took) in &lines {
        table.push([
            name.clone(),
            mb(*bytes),
            percent(*bytes, raw.total()),
            split.map_or("–".to_owned(), |split| percent(split.html, raw.html)),
            split.map_or("–".to_owned(), |split| percent(split.other, raw.other)),
            if *is_random_access { "yes" } else { "no" }.to_owned(),
            took.map_or("–".to_owned(), |took| format!("{:.1}", took.seconds)),
            took.map_or("–".to_owned(), |took| format!("{:.1}", took.cpu_seconds)),
        ]);
        if name.starts_with(OURS) {
            table.strong();
        }
    }
    report.section("Compared with other ways").table(&table);
    report.paragraph(
        "Ours counts all files: packs, index and state; HTML and other are content alone. zip, \
         tar.gz and WARC.gz hold one visit each; the solid ways hold all visits of a site in two \
         streams, HTML and other files, one visit after the other. zip is counted by its format from \
         what deflate gives at level 6. CPU seconds are those of this process, so those of bzip2, xz \
         and git, which are programs of their own, are missing.",
    );
    for left_out in &results.left_out {
        report.paragraph(format!("LEFT OUT: {left_out}."));
    }
    let names: Vec<String> = lines.iter().map(|line| line.0.clone()).collect();
    let plot = Plot::bars("All visits (fig. 7)", names)
        .y(percent_axis("of raw"))
        .note("lower is better")
        .series(Series::bars("of raw", lines.iter().map(|line| share(line.1, raw.total()))));
    report.plot(&plot);
    let split: Vec<&Line> = lines.iter().filter(|line| line.2.is_some()).collect();
    let mut plot = Plot::bars("HTML and other files", split.iter().map(|line| line.0.clone()))
        .y(percent_axis("of raw HTML, of raw other"))
        .note("content alone");
    type Kind = fn(Split) -> u64;
    for (name, of) in [("HTML", (|split| split.html) as Kind), ("other", |split| split.other)] {
        let shares = split.iter().map(|line| share(line.2.map_or(0, of), of(raw)));
        plot.push(Series::bars(name, shares));
    }
    report.plot(&plot);
}

struct Genre {
    raw: Split,
    stored: u64,
    content: Split,
    steps: Split,
    git: Option<u64>,
}

fn by_genre(results: &Results) -> BTreeMap<String, Genre> {
    let mut genres: BTreeMap<String, Genre> = BTreeMap::new();
    for site in &results.sites {
        let genre = genres.entry(site.genre.clone()).or_insert(Genre {
            raw: Split::default(),
            stored: 0,
            content: Split::default(),
            steps: Split::default(),
            git: Some(0),
        });
        genre.raw += raw(site);
        genre.stored += site.ours.compacted.total();
        genre.content += site.ours.compacted.content;
        let (html, other) = paper(std::slice::from_ref(site));
        genre.steps += Split { html: html.block_in_space, other: other.block_in_space };
        let git = site.others.ways.iter().find(|way| way.name.starts_with("git"));
        genre.git = genre.git.zip(git.map(|git| git.bytes)).map(|(a, b)| a + b);
    }
    genres
}

fn genres(report: &mut Report, results: &Results) {
    let genres = by_genre(results);
    let names: Vec<String> = genres.keys().cloned().collect();
    let mut table = Table::new([
        "genre", "raw MB", "HTML of raw", "stored", "HTML", "other", "paper: all", "HTML", "other",
        "git",
    ])
    .caption("By genre: share of raw that is stored after compact, by our archive, by paper 001's four steps and by git (figs 8, 9)");
    for (name, genre) in &genres {
        table.push([
            name.clone(),
            mb(genre.raw.total()),
            percent(genre.raw.html, genre.raw.total()),
            percent(genre.stored, genre.raw.total()),
            percent(genre.content.html, genre.raw.html),
            percent(genre.content.other, genre.raw.other),
            percent(genre.steps.total(), genre.raw.total()),
            percent(genre.steps.html, genre.raw.html),
            percent(genre.steps.other, genre.raw.other),
            genre.git.map_or("–".to_owned(), |git| percent(git, genre.raw.total())),
        ]);
    }
    report.section("By genre").table(&table);
    let make_up = Plot::bars("What sites are made of (fig. 8)", names.clone())
        .y(percent_axis("of raw"))
        .series(Series::bars(
            "HTML",
            genres.values().map(|genre| share(genre.raw.html, genre.raw.total())),
        ))
        .series(Series::bars(
            "other",
            genres.values().map(|genre| share(genre.raw.other, genre.raw.total())),
        ));
    let ours = Plot::bars("Stored after compact (fig. 9)", names.clone())
        .y(percent_axis("of raw"))
        .note("each kind as a share of the same kind")
        .series(Series::bars("all", genres.values().map(|g| share(g.stored, g.raw.total()))))
        .series(Series::bars("HTML", genres.values().map(|g| share(g.content.html, g.raw.html))))
        .series(Series::bars(
            "other",
            genres.values().map(|g| share(g.content.other, g.raw.other)),
        ));
    let paper = Plot::bars("Paper 001's four steps (fig. 9)", names)
        .y(percent_axis("of raw"))
        .note("blocks uncompressed, as in the paper")
        .series(Series::bars("all", genres.values().map(|g| share(g.steps.total(), g.raw.total()))))
        .series(Series::bars("HTML", genres.values().map(|g| share(g.steps.html, g.raw.html))))
        .series(Series::bars("other", genres.values().map(|g| share(g.steps.other, g.raw.other))));
    report.plot(&make_up).plot(&ours).plot(&paper);
}

fn visits(report: &mut Report, results: &Results) {
    let count = results.sites.iter().map(|site| site.raw.len()).max().unwrap_or(0);
    let heads = (1..=count).map(|visit| format!("visit {visit}"));
    let mut table = Table::new(["site".to_owned(), "kB".to_owned()].into_iter().chain(heads))
        .caption(
            "Raw bytes of each visit, and what the packs grew by straight after collecting it",
        );
    let kb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e3);
    for site in &results.sites {
        let row = |what: &str, cells: Vec<String>| {
            [site.site.clone(), what.to_owned()].into_iter().chain(cells)
        };
        table.push(row("raw", site.raw.iter().map(|raw| kb(raw.total())).collect()));
        table.push(row("new", site.ours.by_visit.iter().map(|&new| kb(new)).collect()));
        let shares = site.ours.by_visit.iter().zip(&site.raw);
        let shares = shares.map(|(&new, raw)| percent(new, raw.total())).collect();
        table.push(row("of raw", shares));
        table.strong();
    }
    report.section("Visit by visit").table(&table);
    let mut growth = Plot::new("Stored after each visit")
        .x(Axis::linear("visit").from(1.0).to(count as f64))
        .y(Axis::linear("MB so far").from(0.0))
        .note("ours straight after collecting, before compact; the point is after compact");
    let running = |by_visit: &[u64]| -> Vec<(f64, f64)> {
        let mut sum = 0;
        by_visit
            .iter()
            .enumerate()
            .map(|(place, bytes)| {
                sum += bytes;
                ((place + 1) as f64, sum as f64 / 1e6)
            })
            .collect()
    };
    let mut ours = vec![0; count];
    for site in &results.sites {
        ours.iter_mut().zip(&site.ours.by_visit).for_each(|(sum, bytes)| *sum += bytes);
    }
    growth.push(Series::line(OURS, running(&ours)));
    let steps = |place: usize| -> u64 {
        let of = |steps: &Vec<StepBytes>| steps.get(place).map_or(0, |s| s.block_in_space);
        results.sites.iter().map(|s| of(&s.others.paper_html) + of(&s.others.paper_other)).sum()
    };
    let steps: Vec<u64> = (0..count).map(steps).collect();
    growth.push(Series::line("paper 001", running(&steps)));
    let named = ["WARC.gz with revisits", "WARC.gz", "tar.gz -9"];
    for way in summed(results).iter().filter(|way| named.contains(&way.name.as_str())) {
        growth.push(Series::line(way.name.clone(), running(&way.by_visit)));
    }
    let after = results.ours.compacted.store as f64 / 1e6;
    growth.push(Series::scatter(format!("{OURS}, compacted"), [(count as f64, after)]));
    let mut shares = Plot::new("New bytes of a visit")
        .x(Axis::linear("visit").from(1.0).to(count as f64))
        .y(percent_axis("of the visit's raw bytes"))
        .note("by site, straight after collecting");
    for site in &results.sites {
        let points = site.ours.by_visit.iter().zip(&site.raw).enumerate();
        let points =
            points.map(|(place, (&new, raw))| ((place + 1) as f64, share(new, raw.total())));
        shares.push(Series::line(site.site.clone(), points));
    }
    report.plot(&growth).plot(&shares);
}

fn steps(report: &mut Report, results: &Results) {
    report.section("Paper 001's four steps, one by one");
    report.paragraph(
        "What remains of all visits after each step, in the paper's order, nothing compressed: files \
         that did not change since the visit before, files that are twice in a visit, blocks of HTML \
         that were in the visit before, blocks that are twice in a visit.",
    );
    let mut table =
        Table::new(std::iter::once("").chain(STEPS)).caption("Share of raw after each step");
    let (html, other) = paper(&results.sites);
    let all: StepBytes = [html, other].into_iter().sum();
    let mut plot = Plot::bars("What each step leaves", STEPS).y(percent_axis("of raw"));
    for (name, steps) in [("all", all), ("HTML", html), ("other", other)] {
        let cells = steps.in_order().map(|bytes| percent(bytes, steps.raw));
        table.push(std::iter::once(name.to_owned()).chain(cells));
        plot.push(Series::bars(name, steps.in_order().map(|bytes| share(bytes, steps.raw))));
    }
    for site in &results.sites {
        let (html, other) = paper(std::slice::from_ref(site));
        let both: StepBytes = [html, other].into_iter().sum();
        let cells = both.in_order().map(|bytes| percent(bytes, both.raw));
        table.push(std::iter::once(site.site.clone()).chain(cells));
    }
    report.table(&table).plot(&plot);
}

fn times(report: &mut Report, results: &Results) {
    let ours = &results.ours;
    let sum = |took: &[Took]| -> Took {
        took.iter().fold(Took::default(), |mut sum, one| {
            sum += *one;
            sum
        })
    };
    let mut table = Table::new([
        "site",
        "raw MB",
        "collect s",
        "CPU s",
        "MB per CPU s",
        "restore a visit s",
        "CPU s",
    ])
    .caption("Taking every visit in, and rebuilding a visit as a folder, on average");
    let (mut collect, mut restore) = (Took::default(), Took::default());
    let mut rebuilt = 0;
    let mut row = |name: String, raw: u64, collect: Took, restore: Took, visits: usize| {
        let visits = visits.max(1) as f64;
        table.push([
            name,
            mb(raw),
            format!("{:.2}", collect.seconds),
            format!("{:.2}", collect.cpu_seconds),
            format!("{:.1}", raw as f64 / 1e6 / collect.cpu_seconds.max(1e-9)),
            format!("{:.3}", restore.seconds / visits),
            format!("{:.3}", restore.cpu_seconds / visits),
        ]);
    };
    for site in &results.sites {
        let (took_in, back) = (sum(&site.ours.collect), sum(&site.ours.restore));
        collect += took_in;
        restore += back;
        rebuilt += site.ours.restore.len();
        row(site.site.clone(), raw(site).total(), took_in, back, site.ours.restore.len());
    }
    row("all".to_owned(), results.raw.total(), collect, restore, rebuilt);
    table.strong();
    report.section("Time").table(&table);
    let mut pages = Table::new(["one page, cold cache", "pages", "mean ms", "p50 ms", "p99 ms"])
        .caption("Reading single pages, milliseconds of the processor");
    for (when, reads) in [
        ("straight after collecting", ours.pages_collected),
        ("after compact", ours.pages_compacted),
    ] {
        pages.push([
            when.to_owned(),
            reads.pages.to_string(),
            format!("{:.3}", reads.mean_ms),
            format!("{:.3}", reads.p50_ms),
            format!("{:.3}", reads.p99_ms),
        ]);
    }
    report.table(&pages);
    report.paragraph(format!(
        "Compact took {:.1} s ({:.1} CPU s) for everything. Collecting is what `nenrin import mirror` \
         does: reading the files, looking for what is new, compressing it quickly, one transaction \
         per 500 files; the network has no part in it. The paper's system took 58.1% of its time for \
         collecting and 40.5% for compressing, 5.5 s to rebuild a visit and about 48 ms for a page.",
        ours.compact.seconds, ours.compact.cpu_seconds
    ));
    let plot = Plot::bars("Time of all visits", ["collect", "compact", "restore"])
        .y(Axis::linear("seconds").from(0.0))
        .series(Series::bars("wall", [collect.seconds, ours.compact.seconds, restore.seconds]))
        .series(Series::bars(
            "CPU",
            [collect.cpu_seconds, ours.compact.cpu_seconds, restore.cpu_seconds],
        ));
    report.plot(&plot);
}

fn overlaps(report: &mut Report, overlap: &Overlap) {
    report.section("Collecting while compressing (fig. 10)");
    report.paragraph(format!(
        "The crawler collects every visit from servers on loopback, each page asked for once a visit, \
         with no pause between requests, while `compact` runs beside it again and again, or not. At \
         most {} visits may wait for the store; beyond that nothing is fetched until it has caught \
         up. Both compete for the same processors, so with compressing each takes longer; what must \
         not happen is that collecting stops until compressing has ended.",
        overlap.queue_max
    ));
    let mut table = Table::new([
        "beside it",
        "visits",
        "time s",
        "visits/s",
        "compactions",
        "compacting s",
        "visits meanwhile",
        "longest standstill s",
        "most queued",
    ]);
    let mut progress =
        Plot::new("Visits done").x(Axis::linear("seconds")).y(Axis::linear("visits"));
    let mut queue = Plot::new("Visits waiting for the store")
        .x(Axis::linear("seconds"))
        .y(Axis::linear("visits").from(0.0))
        .note("the dashed line is the queue's limit");
    let longest = overlap.runs.iter().map(|run| run.seconds).fold(0.0, f64::max);
    for run in &overlap.runs {
        let most = run.samples.iter().map(|sample| sample.queued).max().unwrap_or(0);
        table.push([
            run.name.clone(),
            run.visits.to_string(),
            format!("{:.1}", run.seconds),
            format!("{:.0}", run.visits as f64 / run.seconds.max(1e-9)),
            run.compactions.to_string(),
            format!("{:.1}", run.compacting_seconds),
            visits_while_compacting(run).to_string(),
            format!("{:.2}", longest_pause_s(run)),
            most.to_string(),
        ]);
        let points = run.samples.iter().map(|sample| (sample.at_s, sample.visits as f64));
        progress.push(Series::line(run.name.clone(), points));
        let points = run.samples.iter().map(|sample| (sample.at_s, sample.queued as f64));
        queue.push(Series::line(run.name.clone(), points));
    }
    let bound = overlap.queue_max as f64;
    queue.push(Series::line("bound", [(0.0, bound), (longest, bound)]).as_reference());
    report.table(&table).plot(&progress).plot(&queue);
}

fn visits_while_compacting(run: &super::OverlapRun) -> u64 {
    run.samples
        .windows(2)
        .filter(|pair| pair[0].compacting && pair[1].compacting)
        .map(|pair| pair[1].visits.saturating_sub(pair[0].visits))
        .sum()
}

/// The longest time between two samples without a visit.
pub(crate) fn longest_pause_s(run: &super::OverlapRun) -> f64 {
    let (mut longest, mut since, mut visits) = (0.0_f64, 0.0, 0);
    for sample in &run.samples {
        if sample.visits > visits {
            (since, visits) = (sample.at_s, sample.visits);
        }
        longest = longest.max(sample.at_s - since);
    }
    longest
}
