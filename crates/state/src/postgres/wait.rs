//! Waits for futures on the calling thread. The connections run on a thread of their own
//! (`pool.rs`), so that any executor may poll what waits for their answers.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What the future says in the end.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}

/// A future that is begun with others.
pub(super) type Begun<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

/// What all the futures say in the end, or the first error. They are begun in their order, none waits
/// for another; but after one that fails at once, none is begun.
pub(super) fn wait_all<T, E>(futures: Vec<Begun<'_, Result<T, E>>>) -> Result<Vec<T>, E> {
    let mut all: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    let mut is_begun = false;
    wait(poll_fn(|context| {
        for (future, answer) in all.iter_mut().filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(said) = future.as_mut().poll(context) {
                let fails_at_once = said.is_err() && !is_begun;
                *answer = Some(said);
                if fails_at_once {
                    return Poll::Ready(());
                }
            }
        }
        is_begun = true;
        let is_over = all.iter().all(|(_, answer)| answer.is_some());
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }));
    all.into_iter().filter_map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::ready};

    use super::*;

    #[test]
    fn all_are_begun_in_order_and_none_after_one_that_fails_at_once() {
        let begun = RefCell::new(Vec::new());
        let asks = |name: &'static str, waits: bool, end: Result<u8, &'static str>| {
            let begun = &begun;
            Box::pin(async move {
                begun.borrow_mut().push(name);
                let mut is_first = waits;
                poll_fn(|context| {
                    context.waker().wake_by_ref();
                    match std::mem::take(&mut is_first) {
                        true => Poll::Pending,
                        false => Poll::Ready(()),
                    }
                })
                .await;
                end
            }) as Begun<'_, Result<u8, &'static str>>
        };
        let all = wait_all(vec![asks("a", true, Ok(1)), Box::pin(ready(Ok(2)))]);
        assert_eq!(all, Ok(vec![1, 2]));
        let late = wait_all(vec![asks("b", true, Err("late")), asks("c", true, Ok(3))]);
        assert_eq!(late, Err("late"));
        let early = wait_all(vec![
            asks("d", true, Ok(4)),
            asks("e", false, Err("early")),
            asks("f", false, Ok(5)),
        ]);
        assert_eq!(early, Err("early"));
        assert_eq!(*begun.borrow(), ["a", "b", "c", "d", "e"]);
    }
}
