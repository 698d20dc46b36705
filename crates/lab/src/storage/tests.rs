use super::*;
use std::collections::BTreeMap;

/// Keeps folders unchanged, so that the expected measurements are known.
#[derive(Default)]
struct Shelf {
    folder: PathBuf,
    visits: BTreeMap<(String, i64), PathBuf>,
    loses: Option<&'static str>,
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

impl Subject for Shelf {
    fn take_in(&mut self, site: &str, folder: &Path, at_s: i64) -> Result<(), LabError> {
        let to = self.folder.join(format!("{site}-{at_s}"));
        copy(folder, &to);
        self.visits.insert((site.to_owned(), at_s), to);
        Ok(())
    }

    fn sizes(&mut self) -> Result<Sizes, LabError> {
        let mut sizes = Sizes::default();
        for (site, _) in self.visits.keys() {
            let site = sizes.sites.entry(site.clone()).or_default();
            site.content.html += 100;
            sizes.files += 100;
        }
        Ok(sizes)
    }

    fn compact(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    fn give_back(&mut self, site: &str, at_s: i64, folder: &Path) -> Result<(), LabError> {
        copy(&self.visits[&(site.to_owned(), at_s)], folder);
        if let Some(lost) = self.loses {
            let _ = fs::remove_file(folder.join(lost));
        }
        Ok(())
    }

    fn read_pages(&mut self) -> Result<PageReads, LabError> {
        Ok(PageReads::of((1..=100).map(f64::from).collect()))
    }

    fn overlap(&mut self, sites: &[(String, Vec<PathBuf>)]) -> Result<Overlap, LabError> {
        let visits = sites.iter().map(|(_, visits)| visits.len() as u64).sum();
        let samples = vec![
            OverlapSample { at_s: 0.5, visits: 1, queued: 2, compacting: true },
            OverlapSample { at_s: 2.0, visits: 1, queued: 3, compacting: true },
            OverlapSample { at_s: 2.5, visits, queued: 0, compacting: false },
        ];
        let (compactions, compacting_seconds) = (1, 2.0);
        let name = "compact".to_owned();
        let run =
            OverlapRun { name, visits, seconds: 2.5, compactions, compacting_seconds, samples };
        Ok(Overlap { queue_max: 256, runs: vec![run] })
    }
}

const PARAGRAPH: &str = "<p>A paragraph that every page of the site shows to everyone.</p>\n";

/// Two sites, the first with two visits of which one page changes and one picture stays.
fn corpus(folder: &Path) -> StorageOptions {
    for (place, text) in [
        ("news/1/index.html", PARAGRAPH.repeat(40)),
        ("news/1/pic/a.png", "\u{1}picture".repeat(30)),
        ("news/2/index.html", PARAGRAPH.repeat(41) + "<p>new</p>"),
        ("news/2/pic/a.png", "\u{1}picture".repeat(30)),
        ("blog/1/a b.html", PARAGRAPH.repeat(9)),
        ("blog/1/style.css", "p { margin: 0 }".repeat(9)),
        ("blog/notes/ignored.txt", "no visit".to_owned()),
    ] {
        let path = folder.join("corpus").join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    StorageOptions {
        corpus: folder.join("corpus"),
        sites: Vec::new(),
        genres: vec![("blog".to_owned(), "personal".to_owned())],
        work: folder.join("work"),
        overlap: true,
        out: Some(folder.join("out")),
    }
}

fn way<'a>(results: &'a Results, site: &str, name: &str) -> &'a OtherWay {
    let site = results.sites.iter().find(|s| s.site == site).unwrap();
    site.others.ways.iter().find(|way| way.name == name).unwrap()
}

#[test]
fn every_way_is_measured_on_every_site_and_the_report_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = corpus(folder.path());
    let mut shelf = Shelf { folder: folder.path().join("shelf"), ..Shelf::default() };
    let outcome = run(&options, &mut shelf, &mut |_| {}).unwrap();
    let results = &outcome.results;
    assert!(results.ours.is_identical, "{:?}", results.ours.differences);
    assert_eq!(results.sites.len(), 2);
    let news = results.sites.iter().find(|site| site.site == "news").unwrap();
    assert_eq!(news.ours.by_visit, [100, 100]);
    assert_eq!(news.raw[0].other, 240);
    let steps = news.others.paper_other[1];
    assert_eq!((steps.raw, steps.file_in_time), (240, 0), "the picture did not change");
    assert!(news.others.paper_html[1].block_in_time < 100, "only what is new is left");
    let (plain, revisits) =
        (way(results, "news", "WARC.gz"), way(results, "news", "WARC.gz with revisits"));
    assert_eq!(plain.by_visit[0], revisits.by_visit[0]);
    assert!(revisits.by_visit[1] < plain.by_visit[1] + 100);
    let (files, solid) =
        (way(results, "news", "zstd -19 per file"), way(results, "news", "zstd -19 solid"));
    assert!(files.is_random_access && !solid.is_random_access);
    assert!(files.bytes > 0 && solid.split.unwrap().html > 0);
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    for shown in ["(table 1)", "(fig. 7)", "(fig. 8)", "(fig. 9)", "(fig. 10)", "personal"] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(folder.path().join("out/results.json").exists());
}

#[test]
fn a_file_that_does_not_come_back_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = StorageOptions { overlap: false, ..corpus(folder.path()) };
    let mut shelf =
        Shelf { folder: folder.path().join("shelf"), loses: Some("style.css"), ..Shelf::default() };
    let outcome = run(&options, &mut shelf, &mut |_| {}).unwrap();
    assert!(!outcome.results.ours.is_identical);
    assert!(outcome.results.ours.differences[0].ends_with("blog/1/style.css"));
    assert!(outcome.report.to_html().contains("NOT every visit came back"));
}

#[test]
fn other_ways_are_measured_again_only_when_the_corpus_changed() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        StorageOptions { overlap: false, sites: vec!["blog".to_owned()], ..corpus(folder.path()) };
    let measured = || {
        let mut shelf = Shelf { folder: folder.path().join("shelf"), ..Shelf::default() };
        let mut steps = Vec::new();
        run(&options, &mut shelf, &mut |step| steps.push(step.to_owned())).unwrap();
        steps.iter().any(|step| step == "blog: zip")
    };
    assert!(measured());
    assert!(!measured());
    fs::write(options.corpus.join("blog/1/more.html"), "<p>more</p>").unwrap();
    assert!(measured());
}

#[test]
fn a_folder_without_visits_or_a_site_that_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let options = StorageOptions { sites: vec!["shop".to_owned()], ..corpus(folder.path()) };
    let error = run(&options, &mut Shelf::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("shop"), "{error}");
    let empty = StorageOptions { corpus: folder.path().join("corpus/blog/notes"), ..options };
    let error = run(&empty, &mut Shelf::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("shop") || error.contains("SITE/VISIT"), "{error}");
}

#[test]
fn the_longest_pause_is_the_longest_time_without_a_visit() {
    let run = Shelf::default().overlap(&[("a".to_owned(), vec![PathBuf::new(); 2])]).unwrap();
    assert!((figures::longest_pause_s(&run.runs[0]) - 1.5).abs() < 1e-9);
}
