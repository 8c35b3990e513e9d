//! What a source does as time goes by without rows.

use super::Source;
use crate::clock::{Clock, Until};

/// The wall clock is read this often at least, since people may set it.
const LONGEST_TICK_NS: u64 = 1_000_000_000;

/// What a source that has no rows does.
#[derive(Debug)]
pub enum Quiet {
    /// Nothing.
    Nothing,
    /// Nothing before that time.
    Until(Until),
    /// Its watermark has advanced.
    Watermark(i64),
    /// It has become idle: it is not waited for.
    Idle,
}

impl Source {
    /// Goes on without rows, by the clock.
    pub fn quiet(&mut self, clock: &dyn Clock) -> Quiet {
        if self.idle_after_ns.is_none() && self.clock.as_ref().is_none_or(|clock| clock.ticking.is_none()) {
            return Quiet::Nothing;
        }
        let now_ns = clock.now_ns();
        let mut until: Option<u64> = None;
        if let Some(event_time) = &mut self.clock
            && let Some(ticking) = &event_time.ticking
            && event_time.progress.latest() < self.last_us.saturating_add(ticking.linger_us)
            && self.last_us > i64::MIN
        {
            // The watermark stays behind the clock by the delay.
            let (watermark, wall_us) = (event_time.progress.watermark(), clock.wall_us());
            let delay = event_time.progress.latest().saturating_sub(watermark);
            let next_us = ticking.next(watermark, self.last_us).saturating_add(delay);
            if wall_us >= next_us {
                event_time.progress.raise(wall_us);
                return Quiet::Watermark(event_time.progress.watermark());
            }
            let left_ns =
                u64::try_from(next_us.saturating_sub(wall_us)).unwrap_or(u64::MAX).saturating_mul(1000);
            until = Some(now_ns + left_ns.min(LONGEST_TICK_NS));
        }
        if let Some(idle_after_ns) = self.idle_after_ns.filter(|_| !self.is_idle) {
            let idle_ns = self.spoke_ns.get_or_insert(now_ns).saturating_add(idle_after_ns);
            if now_ns >= idle_ns {
                self.is_idle = true;
                self.counts.idles.add(1);
                self.counts.is_idle.set(1);
                return Quiet::Idle;
            }
            until = Some(until.map_or(idle_ns, |until| until.min(idle_ns)));
        }
        until.map_or(Quiet::Nothing, |ns| Quiet::Until(Until::clock(ns)))
    }
}
