//! Which zone does a time without one have? The machine's own, or UTC. The system is asked before
//! rights are given up.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use tcpwhy_wire::Instant;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl Zone {
    /// UTC.
    pub const fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// This machine's zone, or that of the variable TZ.
    pub fn local() -> Self {
        Self(TimeZone::system())
    }

    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        Self(TimeZone::get(name).unwrap_or_else(|error| panic!("{error}")))
    }

    /// By how many seconds its clocks are ahead of UTC at that time.
    pub fn offset_s(&self, at: Instant) -> i32 {
        jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos()))
            .map_or(0, |at| self.0.to_offset(at).seconds())
    }

    /// When its clocks show this time: the first of two such instants; a time that is skipped
    /// counts as that much later.
    pub(super) fn instant(&self, date: Date, time: Time) -> Option<Instant> {
        let at = self.0.to_zoned(DateTime::from_parts(date, time)).ok()?;
        i64::try_from(at.timestamp().as_nanosecond()).ok().map(Instant::from_nanos)
    }

    /// The date at that time.
    pub(super) fn date(&self, at: Instant) -> Option<Date> {
        let at = jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos())).ok()?;
        Some(self.0.to_datetime(at).date())
    }
}
