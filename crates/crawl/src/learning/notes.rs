//! What was learnt of a server, and its form in the state.

use std::collections::BTreeMap;

use nenrin_extract::NoisyParts;
use nenrin_state::{Change, ServerId, ServerNote};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    logged_out::LoginLook,
    probe::Probe,
    renderings::{DataOfPages, Families},
    signals::Signals,
    traps::Traps,
};

/// What was learnt of a server: kept as notes of the state, one for each part, and read back when
/// the server is met again. Losing a note costs only learning it again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerLearning {
    /// What it shows for pages that do not exist.
    pub probe: Probe,
    /// Links that were not followed.
    pub traps: Traps,
    /// What its sitemaps and feeds say.
    pub signals: Signals,
    /// Blocks that change without the content changing.
    pub noise: NoisyParts,
    /// What its log-in page looks like.
    pub login: LoginLook,
    /// Which families of its pages are shown in a browser.
    pub families: Families,
    /// What scripts of its pages ask for.
    pub data: DataOfPages,
    unkept: BTreeMap<Part, u32>,
}

/// One part of what is learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Probe,
    Traps,
    Signals,
    Noise,
    Login,
    Families,
    Data,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Traps => "traps",
            Self::Signals => "signals",
            Self::Noise => "noise",
            Self::Login => "login",
            Self::Families => "families",
            Self::Data => "data",
        }
    }

    /// Lessons after which the note is written again: what a crash may cost.
    fn lessons_max(self) -> u32 {
        match self {
            Self::Probe => 16,
            Self::Traps => 256,
            Self::Signals => 128,
            Self::Noise => 32,
            Self::Login | Self::Families | Self::Data => 1,
        }
    }
}

impl ServerLearning {
    /// Reads a server's notes. One that cannot be read is started over.
    pub fn of(notes: &BTreeMap<String, String>) -> Self {
        fn read<T: DeserializeOwned + Default>(notes: &BTreeMap<String, String>, part: Part) -> T {
            let text = notes.get(part.name());
            text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        }
        Self {
            probe: read(notes, Part::Probe),
            traps: read(notes, Part::Traps),
            signals: read(notes, Part::Signals),
            noise: read(notes, Part::Noise),
            login: read(notes, Part::Login),
            families: read(notes, Part::Families),
            data: read(notes, Part::Data),
            unkept: BTreeMap::new(),
        }
    }

    /// Something was learnt; answers with the note to be written when there is enough of it.
    pub(crate) fn learnt(&mut self, server: ServerId, part: Part, at_once: bool) -> Option<Change> {
        let lessons = self.unkept.entry(part).or_default();
        *lessons += 1;
        (at_once || *lessons >= part.lessons_max()).then(|| self.note(server, part))
    }

    /// Notes for all that is not written yet.
    pub(crate) fn unkept(&mut self, server: ServerId) -> Vec<Change> {
        let parts: Vec<Part> = self.unkept.keys().copied().collect();
        parts.into_iter().map(|part| self.note(server, part)).collect()
    }

    fn note(&mut self, server: ServerId, part: Part) -> Change {
        fn written(value: &impl Serialize) -> String {
            // Plain data with text keys always has a JSON form.
            serde_json::to_string(value).unwrap_or_default()
        }
        self.unkept.remove(&part);
        let value = match part {
            Part::Probe => written(&self.probe),
            Part::Traps => written(&self.traps),
            Part::Signals => written(&self.signals),
            Part::Noise => written(&self.noise),
            Part::Login => written(&self.login),
            Part::Families => written(&self.families),
            Part::Data => written(&self.data),
        };
        Change::Note(ServerNote { server, name: part.name().to_owned(), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;

    #[test]
    fn notes_come_back_and_damaged_ones_are_begun_anew() {
        let mut learning = ServerLearning::default();
        learning.probe.not_allowed(7);
        let url = CanonicalUrl::parse("http://e.com/s?a=1").unwrap();
        learning.traps.refuse(crate::traps::Trap::LongUrl, &url, 9);
        assert_eq!(learning.learnt(ServerId(3), Part::Traps, false), None);
        let Some(Change::Note(probe)) = learning.learnt(ServerId(3), Part::Probe, true) else {
            panic!("a note is due at once");
        };
        let rest = learning.unkept(ServerId(3));
        assert_eq!(rest.len(), 1);
        assert!(learning.unkept(ServerId(3)).is_empty());
        let mut notes = BTreeMap::from([(probe.name, probe.value)]);
        if let Change::Note(note) = &rest[0] {
            notes.insert(note.name.clone(), note.value.clone());
        }
        let back = ServerLearning::of(&notes);
        assert_eq!((&back.probe, &back.traps), (&learning.probe, &learning.traps));
        notes.insert("probe".to_owned(), "{broken".to_owned());
        assert_eq!(ServerLearning::of(&notes).probe, Probe::default());
    }

    #[test]
    fn a_note_is_written_after_enough_lessons() {
        let mut learning = ServerLearning::default();
        let written =
            (0..100).filter(|_| learning.learnt(ServerId(1), Part::Noise, false).is_some());
        assert_eq!(written.count(), 3);
    }
}
