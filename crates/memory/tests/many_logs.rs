//! A thousand queries of five logs each start within a small budget, and their real memory is the counted one.
//!
//! A binary of its own, so that its resident size is that of this one test.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "it/arbitrary/mod.rs"]
mod arbitrary;
#[path = "it/support/mod.rs"]
mod support;

use std::sync::Arc;

use arrow_buffer::Buffer;
use penstock_memory::view::make_view;
use penstock_memory::{
    BlockNext, Column, ColumnKind, Coordinator, Layout, LogOptions, LogReader, LogWriter, OpenError, Payload,
    Physical, SelectedColumn, Values,
};
use penstock_queue::wake::NoWake;
use support::{assert_all_returned, coordinator, is_resident_size_our_own, resident_bytes};

const BUDGET_BYTES: usize = 256 << 20;
const LOGS: usize = 1000 * 5;
/// For everything but chunks: 20 KiB per log for directory, signals, wakers and what the process's allocator keeps.
const SLACK_BYTES: u64 = 20 * 1024 * LOGS as u64;

/// Ad events: six strings and a time.
fn layout() -> Layout {
    let text = ColumnKind { physical: Physical::View, nullable: false };
    let mut columns = vec![text; 7];
    columns[5].physical = Physical::I64;
    Layout::new(columns)
}

fn open(coordinator: &Coordinator) -> Result<(LogWriter, LogReader), OpenError> {
    let mut writer = LogWriter::new(layout(), &LogOptions::default(), coordinator, Arc::new(NoWake))?;
    let reader = writer.join(Arc::new(NoWake));
    Ok((writer, reader))
}

/// Writes one row with long values, out of a buffer of which little is used.
fn write_row(writer: &mut LogWriter) {
    let mut bytes = vec![b'x'; 10_000];
    bytes[..36].copy_from_slice(b"0b6a1d9c-3a7e-4b52-9f0e-5d1c2b3a4f5e");
    let view = [make_view(&bytes[..36], 0, 0)];
    let payloads: Vec<Payload> = vec![Buffer::from_vec(bytes).into()];
    let time = Column { values: Values::I64(&[1]), valid: None };
    let text = Column { values: Values::View(&view, (&payloads).into()), valid: None };
    let mut pieces = [SelectedColumn { column: text, rows: None }; 7];
    pieces[5].column = time;
    assert!(writer.room() > 0, "the reservation is available");
    writer.append(&pieces, 0, 1);
}

#[test]
fn a_thousand_queries_start_within_256_mib() {
    let coordinator = coordinator(BUDGET_BYTES, 64 << 20);
    let start = resident_bytes();
    let grown = || if is_resident_size_our_own() { resident_bytes().saturating_sub(start) } else { 0 };
    let mut logs: Vec<(LogWriter, LogReader)> = Vec::new();
    for number in 0..LOGS {
        logs.push(open(&coordinator).unwrap_or_else(|error| panic!("log {number}: {error}")));
    }
    let used = coordinator.snapshot().used_bytes;
    assert!(used <= BUDGET_BYTES as u64 && grown() <= BUDGET_BYTES as u64);
    println!("{LOGS} logs: {} MiB in use, {} MiB resident", used >> 20, grown() >> 20);
    assert!(grown() <= used + SLACK_BYTES, "{} MiB for {} MiB in use", grown() >> 20, used >> 20);

    // Each of them works, and the memory for that is counted, too.
    for (writer, reader) in &mut logs {
        write_row(writer);
        let BlockNext::Rows(lease) = reader.peek(usize::MAX) else { panic!("a row was written") };
        assert_eq!(lease.rows(), 1);
    }
    let used = coordinator.snapshot().used_bytes;
    println!("with a row each: {} MiB in use, {} MiB resident", used >> 20, grown() >> 20);
    assert!(grown() <= used + SLACK_BYTES, "{} MiB for {} MiB in use", grown() >> 20, used >> 20);

    let refusal = loop {
        match open(&coordinator) {
            Ok(log) => logs.push(log),
            Err(refusal) => break refusal,
        }
        assert!(logs.len() < 10 * LOGS, "the budget never ends");
    };
    let text = refusal.to_string();
    let OpenError::Limit(limit) = refusal else { panic!("another reason: {text}") };
    assert_eq!(limit.budget_bytes, BUDGET_BYTES);
    assert!(
        limit.used_bytes + limit.needed_bytes > BUDGET_BYTES && limit.used_bytes <= BUDGET_BYTES + (64 << 20)
    );
    assert!(limit.needed_bytes > 0 && limit.needed_bytes <= 64 << 10, "two chunks of at most 32 KiB");
    assert!(text.starts_with("out of memory budget: ") && text.contains("256 MiB in use"), "{text}");

    // What one log returns is enough for another.
    logs.truncate(logs.len() - 2);
    logs.push(open(&coordinator).unwrap());
    drop(logs);
    assert_all_returned(&coordinator);
}
