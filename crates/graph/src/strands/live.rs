//! Which columns each strand has to carry, and what follows from it.

use penstock_memory::SlotId;
use penstock_plan::WindowKind;

use super::{Goes, StrandId, Strands, Ticks};

impl Strands {
    /// Settles what is read where: by each strand, of each batch, and whether the times of results are.
    pub(super) fn settle(&mut self) {
        self.find_live();
        self.prune();
        for operator in 0..self.operators.len() {
            let time = self.result_time(self.operators[operator].results);
            for port in &mut self.operators[operator].ports {
                port.results.time_slot = time;
            }
        }
    }

    /// Settles what each strand has to carry, from the ends backwards (STRAND-2).
    fn find_live(&mut self) {
        for strand in (0..self.strands.len()).rev() {
            let mut reads: Vec<SlotId> = Vec::new();
            for goes in &self.strands[strand].goes {
                match *goes {
                    Goes::Output(_) => reads.extend_from_slice(self.strands[strand].segment.scope.slots()),
                    Goes::Strand(reader) => reads.extend(self.read_by(reader, strand)),
                    Goes::Port(operator, port) => {
                        let operator = &self.operators[operator];
                        reads.extend(operator.ports[port].reads());
                        // What a function returns is judged by the watermark of the rows that it was given, and only
                        // times tell where that has to be exact.
                        if operator.calls_function() && self.result_time(operator.results).is_some() {
                            let clock = self.strands[strand].segment.scope.clock();
                            reads.extend(clock.map(|clock| clock.time));
                        }
                        reads.extend(operator.late.iter().flat_map(|&late| self.read_by(late, strand)));
                    }
                }
            }
            let strand = &mut self.strands[strand];
            strand.segment.end_reads = reads;
            strand.live = strand.segment.live_at_begin();
        }
    }

    /// Lists the slots at the end of a strand that a reader of it needs.
    fn read_by(&self, reader: StrandId, strand: StrandId) -> Vec<SlotId> {
        let needs = self.strands[reader].needs();
        needs.into_iter().map(|need| self.strands[strand].slot_at_end(need)).collect()
    }

    /// Settles which columns of a batch are converted: those that are read.
    fn prune(&mut self) {
        for stream in &mut self.streams {
            let mut reads = vec![false; stream.step().schema.fields().len()];
            let live = self.strands[stream.strand].live.iter().copied();
            for slot in live.chain(stream.step().clock_columns()) {
                if let Some(column) = reads.get_mut(slot) {
                    *column = true;
                }
            }
            stream.reads = reads;
        }
    }

    /// Returns the slot of the time of results, if a reader goes by it.
    fn result_time(&self, results: StrandId) -> Option<SlotId> {
        let results = &self.strands[results];
        let clock = results.segment.scope.clock();
        clock.map(|clock| clock.time).filter(|slot| results.live.contains(slot))
    }

    /// Where the time of arrival is event time, it goes on by itself, until the longest window has closed.
    pub(super) fn set_ticks(&mut self) {
        let (mut windows, mut longest) = (Vec::new(), 0);
        let steps = self.operators.iter().map(|operator| operator.node.0.step());
        for (window, lateness) in steps.filter_map(|step| step.windows()) {
            let whole = match window {
                WindowKind::Tumbling { size, .. } | WindowKind::Sliding { size, .. } => size,
                WindowKind::Session { gap } => gap.saturating_mul(2),
            };
            longest = longest.max(whole.saturating_add(lateness));
            windows.extend(window.windows());
        }
        // Windows over windows close one after the other.
        let linger_us = i64::saturating_mul(longest, 1 + self.operators.len() as i64);
        for stream in &mut self.streams {
            if stream.clock.is_some() && stream.step().arrival.is_some() && longest > 0 {
                stream.ticks = Some(Ticks { windows: windows.clone(), linger_us });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use penstock_expr::Expr;
    use penstock_plan::Plan;
    use penstock_types::Span;

    use super::*;
    use crate::samples::{count, counted, events, outputs, positive};

    fn strands(plan: &Plan) -> Strands {
        Strands::of(&outputs(plan), false).unwrap()
    }

    #[test]
    fn only_columns_that_are_read_are_converted() {
        let reads = |plan: &Plan| strands(plan).streams[0].reads.clone();
        assert_eq!(reads(&counted(&events("a"))), [true, true, false]);
        assert_eq!(reads(&counted(&positive(&events("a"), "v"))), [true, true, true]);
        let narrow = events("a").select(vec![Expr::column("v")]).unwrap();
        assert_eq!(reads(&narrow), [true, false, true], "event time is read off the batch in any case");
    }

    #[test]
    fn the_time_of_results_is_emitted_where_a_window_goes_by_it() {
        let once = strands(&counted(&events("a")));
        assert_eq!(once.operators[0].ports[0].results.time_slot, None);
        let twice = counted(&events("a")).tumbling(Span::Ticks(100), vec![], count()).unwrap();
        let twice = strands(&twice);
        assert!(twice.operators[0].ports[0].results.time_slot.is_some());
        assert_eq!(twice.operators[1].ports[0].results.time_slot, None);
    }

    #[test]
    fn late_rows_keep_the_columns_that_their_readers_read() {
        let windows = counted(&events("a"));
        let late = windows.late().unwrap().select(vec![Expr::column("v")]).unwrap();
        let both = penstock_plan::Outputs::new(vec![("a".to_owned(), windows), ("b".to_owned(), late)]);
        let strands = Strands::of(&both.unwrap(), false).unwrap();
        assert_eq!(strands.streams[0].reads, [true, true, true]);
    }
}
