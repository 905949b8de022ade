//! Definitions as commands, which read back to the same.

use crate::model::nqs::{Destination, Destinations, NqsQueue};
use std::fmt::Write;

/// The command that creates a queue.
pub fn create(queue: &NqsQueue) -> String {
    let kind = if queue.pipe.is_some() { "pipe_queue" } else { "batch_queue" };
    let mut text = format!("create {kind} {} priority={}", queue.name, queue.priority);
    match &queue.pipe {
        Some(Destinations::Listed(list)) => {
            text.push_str(" server=(pipeclient)");
            if !list.is_empty() {
                let list: Vec<String> = list.iter().map(Destination::to_string).collect();
                let _ = write!(text, " destination=({})", list.join(","));
            }
        }
        Some(selected) => {
            let _ = write!(text, " server=(pipeclient {selected})");
        }
        None => {}
    }
    if let Some(limit) = queue.run_limit {
        let _ = write!(text, " run_limit={limit}");
    }
    for (on, word) in [(queue.load_only, " loadonly"), (queue.pipe_only, " pipeonly")] {
        text.push_str(if on { word } else { "" });
    }
    text
}
