/// State of one output that is sent only when it changed or someone new listens.
#[derive(Default)]
pub struct Sent {
    revision: u64,
    listeners: usize,
}

impl Sent {
    /// Whether it is to be sent now; if so, it counts as sent.
    pub fn is_due(&mut self, revision: u64, listeners: usize) -> bool {
        let due = listeners > 0 && (revision != self.revision || listeners > self.listeners);
        self.listeners = listeners;
        if due {
            self.revision = revision;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::Sent;

    #[test]
    fn sent_when_changed_or_when_someone_new_listens() {
        let mut sent = Sent::default();
        assert!(!sent.is_due(1, 0), "nobody listens");
        assert!(sent.is_due(1, 1), "changed");
        assert!(!sent.is_due(1, 1), "nothing new");
        assert!(sent.is_due(1, 2), "one more listener");
        assert!(!sent.is_due(1, 1), "one listener less");
        assert!(sent.is_due(1, 2), "a new one in its place");
        assert!(!sent.is_due(2, 0), "nobody listens");
        assert!(sent.is_due(2, 1), "changed meanwhile");
    }
}
