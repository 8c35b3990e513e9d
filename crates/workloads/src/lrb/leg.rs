//! A leg of a car's journey: it changes evenly to a new speed, and keeps it.

/// A car changes its speed by this many feet per second each second.
const CHANGE_FPS2: f32 = 4.0;

/// Converts miles per hour to feet per second.
pub(super) fn fps(mph: u64) -> f32 {
    mph as f32 * (5_280.0 / 3_600.0)
}

/// Seconds count from the car's entry. 32 bits resolve a foot after any trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leg {
    pub(super) start_s: f32,
    pub(super) start_ft: f32,
    pub(super) start_fps: f32,
    pub(super) cruise_fps: f32,
}

impl Leg {
    /// Creates a leg of a car that stands still.
    pub(super) fn standing(start_s: f32, start_ft: f32) -> Self {
        Self { start_s, start_ft, start_fps: 0.0, cruise_fps: 0.0 }
    }

    /// Returns the position and speed of the car at a time from the start of this leg on.
    #[inline(always)]
    pub(super) fn at(&self, s: f32) -> (f32, f32) {
        let change = self.cruise_fps - self.start_fps;
        let driven_s = s - self.start_s;
        let changing_s = driven_s.min(change.abs() * (1.0 / CHANGE_FPS2));
        let speed = self.start_fps + CHANGE_FPS2.copysign(change) * changing_s;
        let changing_ft = (self.start_fps + speed) * 0.5 * changing_s;
        (self.start_ft + changing_ft + self.cruise_fps * (driven_s - changing_s), speed)
    }

    /// Returns the time at which the car reaches a place, or the start of the leg if it was there before.
    pub(super) fn arrival_s(&self, ft: f32) -> f32 {
        let way_ft = (ft - self.start_ft).max(0.0);
        let rate = CHANGE_FPS2.copysign(self.cruise_fps - self.start_fps);
        let changing_s = (self.cruise_fps - self.start_fps) / rate;
        let changing_ft = (self.start_fps + self.cruise_fps) * 0.5 * changing_s;
        let driven_s = if way_ft < changing_ft {
            ((self.start_fps * self.start_fps + 2.0 * rate * way_ft).sqrt() - self.start_fps) / rate
        } else {
            changing_s + (way_ft - changing_ft) / self.cruise_fps
        };
        self.start_s + driven_s
    }

    /// Returns the leg that follows at a time, towards another speed.
    pub(super) fn then(&self, s: f32, cruise_fps: f32) -> Self {
        let (start_ft, start_fps) = self.at(s);
        Self { start_s: s, start_ft, start_fps, cruise_fps }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arrival_is_the_inverse_of_place(
            start_s in 0f32..10_000.0,
            start_ft in 0f32..500_000.0,
            start_fps in 0f32..110.0,
            cruise_fps in 10f32..110.0,
            way_ft in 0f32..100_000.0,
        ) {
            let leg = Leg { start_s, start_ft, start_fps, cruise_fps };
            let s = leg.arrival_s(start_ft + way_ft);
            let (ft, speed) = leg.at(s);
            prop_assert!((ft - (start_ft + way_ft)).abs() < 0.5, "{ft} after {way_ft} from {start_ft}");
            let (low, high) = (start_fps.min(cruise_fps), start_fps.max(cruise_fps));
            prop_assert!(low - 0.001 <= speed && speed <= high + 0.001, "{speed}");
            prop_assert_eq!(leg.arrival_s(start_ft - way_ft), start_s);
        }

        #[test]
        fn a_following_leg_begins_where_the_one_before_was(
            start_fps in 0f32..110.0,
            cruise_fps in 10f32..110.0,
            next_fps in 10f32..110.0,
            s in 0f32..1_000.0,
        ) {
            let leg = Leg { start_s: 0.0, start_ft: 1_000.0, start_fps, cruise_fps };
            prop_assert_eq!(leg.then(s, next_fps).at(s), leg.at(s));
        }
    }

    #[test]
    fn speeds_change_evenly_and_then_stay() {
        let leg = Leg { start_s: 10.0, start_ft: 100.0, start_fps: 40.0, cruise_fps: 80.0 };
        assert_eq!(leg.at(10.0), (100.0, 40.0));
        assert_eq!(leg.at(15.0), (350.0, 60.0));
        assert_eq!(leg.at(20.0), (700.0, 80.0));
        assert_eq!(leg.at(30.0), (1_500.0, 80.0));
        let braking = Leg { start_fps: 80.0, cruise_fps: 40.0, ..leg };
        assert_eq!(braking.at(15.0), (450.0, 60.0));
        assert_eq!(braking.at(30.0), (1_100.0, 40.0));
        assert_eq!(Leg::standing(5.0, 70.5).at(1_000.0), (70.5, 0.0));
    }
}
