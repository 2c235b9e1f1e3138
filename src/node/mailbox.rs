//! The way into the mapper's thread: one slot for the newest frame, and a short queue of commands.
//!
//! A camera is faster than a mapper. Frames that wait would only grow old, so a new one takes the place of the one
//! before it, which is counted as dropped.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard},
};

/// What the mapper's thread is to do next.
#[derive(Debug, PartialEq)]
pub enum Work<F, C> {
    Frame(F),
    Command(C),
    /// The mailbox was closed; what was still in it is gone.
    Closed,
}

#[derive(Debug)]
struct Slots<F, C> {
    frame: Option<F>,
    commands: VecDeque<C>,
    dropped: u64,
    closed: bool,
}

/// Shared by the threads that receive and the one that maps.
#[derive(Debug)]
pub struct Mailbox<F, C> {
    slots: Mutex<Slots<F, C>>,
    filled: Condvar,
}

impl<F, C> Default for Mailbox<F, C> {
    fn default() -> Self {
        let slots = Slots {
            frame: None,
            commands: VecDeque::new(),
            dropped: 0,
            closed: false,
        };
        Mailbox {
            slots: Mutex::new(slots),
            filled: Condvar::new(),
        }
    }
}

impl<F, C> Mailbox<F, C> {
    /// Puts a frame into the slot. One that was still there is dropped and counted.
    pub fn put_frame(&self, frame: F) {
        let mut slots = self.lock();
        if slots.closed {
            return;
        }
        if slots.frame.replace(frame).is_some() {
            slots.dropped += 1;
        }
        self.filled.notify_one();
    }

    /// Queues a command. False when the mailbox is closed: nobody will carry it out.
    pub fn put_command(&self, command: C) -> bool {
        let mut slots = self.lock();
        if slots.closed {
            return false;
        }
        slots.commands.push_back(command);
        self.filled.notify_one();
        true
    }

    /// Queues a command unless one like it waits already. False when the mailbox is closed.
    pub fn put_command_once(&self, command: C, is_like_it: impl Fn(&C) -> bool) -> bool {
        let mut slots = self.lock();
        if slots.closed {
            return false;
        }
        if !slots.commands.iter().any(is_like_it) {
            slots.commands.push_back(command);
            self.filled.notify_one();
        }
        true
    }

    /// Waits for work. Commands come first: they are short, and a frame can still be overtaken by a newer one.
    pub fn take(&self) -> Work<F, C> {
        let mut slots = self.lock();
        loop {
            if slots.closed {
                return Work::Closed;
            }
            if let Some(command) = slots.commands.pop_front() {
                return Work::Command(command);
            }
            if let Some(frame) = slots.frame.take() {
                return Work::Frame(frame);
            }
            slots = self
                .filled
                .wait(slots)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Ends the work; what waits is thrown away.
    pub fn close(&self) {
        let mut slots = self.lock();
        slots.closed = true;
        slots.frame = None;
        slots.commands.clear();
        self.filled.notify_all();
    }

    /// Frames that were overtaken by a newer one.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Slots<F, C>> {
        // Every change above leaves the slots valid, so a poisoned lock is still good.
        self.slots
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn only_the_newest_frame_is_taken_and_the_others_are_counted() {
        let mailbox = Mailbox::<u32, ()>::default();
        for frame in 0..5 {
            mailbox.put_frame(frame);
        }
        assert_eq!(mailbox.take(), Work::Frame(4));
        assert_eq!(mailbox.dropped(), 4);
        mailbox.put_frame(5);
        assert_eq!(mailbox.take(), Work::Frame(5));
        assert_eq!(mailbox.dropped(), 4);
    }

    #[test]
    fn commands_come_first_and_in_order() {
        let mailbox = Mailbox::<u32, &str>::default();
        mailbox.put_frame(1);
        assert!(mailbox.put_command("reset"));
        assert!(mailbox.put_command("save"));
        assert_eq!(mailbox.take(), Work::Command("reset"));
        assert_eq!(mailbox.take(), Work::Command("save"));
        assert_eq!(mailbox.take(), Work::Frame(1));
    }

    #[test]
    fn a_command_that_waits_already_is_not_queued_again() {
        let mailbox = Mailbox::<u32, &str>::default();
        for _ in 0..3 {
            assert!(mailbox.put_command_once("publish", |queued| *queued == "publish"));
        }
        mailbox.put_frame(1);
        assert_eq!(mailbox.take(), Work::Command("publish"));
        assert_eq!(mailbox.take(), Work::Frame(1));
    }

    #[test]
    fn a_closed_mailbox_takes_nothing_and_wakes_the_waiting() {
        let mailbox = Arc::new(Mailbox::<u32, ()>::default());
        let waiting = thread::spawn({
            let mailbox = mailbox.clone();
            move || mailbox.take()
        });
        mailbox.close();
        assert_eq!(waiting.join().unwrap(), Work::Closed);
        mailbox.put_frame(1);
        assert!(!mailbox.put_command(()));
        assert_eq!(mailbox.take(), Work::Closed);
    }

    #[test]
    fn a_slow_reader_sees_frames_in_order_and_none_twice() {
        const FRAMES: u64 = 1000;
        let mailbox = Arc::new(Mailbox::<u64, ()>::default());
        let reader = thread::spawn({
            let mailbox = mailbox.clone();
            move || {
                let mut seen = Vec::new();
                while seen.last() != Some(&(FRAMES - 1)) {
                    if let Work::Frame(frame) = mailbox.take() {
                        seen.push(frame);
                    }
                }
                seen
            }
        });
        for frame in 0..FRAMES {
            mailbox.put_frame(frame);
        }
        let seen = reader.join().unwrap();
        assert!(seen.is_sorted_by(|a, b| a < b));
        assert_eq!(seen.len() as u64 + mailbox.dropped(), FRAMES);
    }
}
