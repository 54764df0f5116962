//! Graphs: what a capture came to, and what a launch of it does.

use crate::code::{Code, INVALID_HANDLE, SUCCESS};
use crate::state::State;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    /// So many nanoseconds of work.
    Work(u64),
    /// An external event, stamped by every launch.
    Record(usize),
}

impl State {
    pub(crate) fn launch(&mut self, graph: usize, stream: usize) -> Code {
        let Some(nodes) = self.graphs.get(&graph).cloned() else { return INVALID_HANDLE };
        for node in nodes {
            let code = match node {
                Node::Work(ns) => self.submit(stream, ns).err().unwrap_or(SUCCESS),
                Node::Record(event) => self.stamp(event, stream),
            };
            if code != SUCCESS {
                return code;
            }
        }
        SUCCESS
    }
}
