//! Requests to the simulated web, under the eyes of the checkers.

use nenrin_crawl::{Answer, Event, FetchOrder, Purpose, Ticket};
use nenrin_state::Validators;

use super::{Happening, Simulation};
use crate::crawl::{Sabotage, oddities::Truth, web::Reply};

impl Simulation {
    pub(super) fn fetch(&mut self, worker: usize, order: FetchOrder) {
        self.report.fetches += 1;
        if order.purpose == Purpose::Page {
            self.report.asked += 1;
            for (budget, most) in self.budgets_of(&order.url) {
                self.budget.asked(self.clock_ms() / 1000, budget, most);
            }
        }
        let server = order.url.server();
        let crawl_delay_ms = self.robots.pause_ms(&server);
        // A crawl-delay binds once the robots.txt that asks for it has been read.
        let knows = order.purpose != Purpose::Robots;
        let own_ms = self.options.delay_ms.map_or(1_000, |ms| ms as i64);
        let pause_ms = if knows { crawl_delay_ms.max(own_ms) } else { own_ms };
        let in_hours = self
            .options
            .window
            .as_ref()
            .is_none_or(|window| window.is_open(self.clock_ms() / 1000));
        self.politeness.asked(self.now_ms, &server, pause_ms, in_hours || !knows);
        if knows {
            self.robots.asked(self.clock_ms() / 1000, &order.url);
        }
        self.note("fetch", order.url.as_str());
        let mut reply = self.web.answer(&order, self.now_ms, self.report.fetches);
        if let Some(trouble) = self.bad_days.trouble(self.now_ms, order.url.host()) {
            reply = Reply { truth: Truth::default(), ..reply };
            reply.fetched.result = Err(trouble);
        }
        let (ticket, elapsed_ms) = (order.ticket, reply.fetched.elapsed_ms);
        self.workers[worker].under_way.insert(ticket, (order, reply.truth));
        self.later(worker, elapsed_ms, Happening::Answer(ticket, Box::new(reply)));
    }

    pub(super) fn answered(&mut self, worker: usize, ticket: Ticket, mut reply: Reply) {
        let Some((order, _)) = self.workers[worker].under_way.get(&ticket) else { return };
        if order.purpose == Purpose::Robots {
            let (now_s, server) = (self.clock_ms() / 1000, order.url.server());
            self.robots.answered(now_s, &server, &reply.fetched.result);
            if self.options.sabotage == Some(Sabotage::DeafToRobots) {
                let answer = Answer { status: 404, ..Answer::default() };
                reply.fetched.result = Ok(answer);
            }
        }
        let answer = reply.fetched.result.as_mut().ok();
        let retry_after_s = answer.as_ref().and_then(|answer| answer.retry_after_s);
        self.politeness.answered(self.now_ms, &order.url.server(), retry_after_s);
        if let (Some(answer), Some(Sabotage::BlindToSameness)) = (answer, self.options.sabotage) {
            answer.validators = Validators::default();
            answer.mark = answer.mark.map(|mut mark| {
                mark.0[..8].copy_from_slice(&self.report.fetches.to_le_bytes());
                mark
            });
        }
        if let (Ok(answer), Some(Sabotage::BlindToLooks)) =
            (&mut reply.fetched.result, self.options.sabotage)
            && order.purpose == Purpose::Page
        {
            answer.fingerprint = None;
            answer.challenge = None;
        }
        let event = Event::Fetched { ticket, fetched: Box::new(reply.fetched) };
        self.later(worker, 0, Happening::Event(event));
    }
}
