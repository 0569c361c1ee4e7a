//! A report produced in shards, as threads do it; fuzz targets share this file.

use tcpwhy_core::report::Report;
use tcpwhy_core::{Coordinator, Front, Options, Shard};
use tcpwhy_wire::Segment;

/// The report with this many shards, as threads would produce it.
pub(crate) fn spread(segments: &[Segment], options: Options, shards: usize) -> Report {
    spread_captured(segments.iter().map(|segment| (segment, None)), options, shards)
}

/// The same, with heads read in the captured part of payloads.
pub(crate) fn spread_captured<'a>(
    segments: impl Iterator<Item = (&'a Segment, Option<&'a [u8]>)>,
    options: Options,
    shards: usize,
) -> Report {
    let (mut front, mut shards, mut coordinator) = options.parts(shards);
    let mut packet = 0;
    let mut epochs = 0;
    front.begin_epoch(coordinator.epoch(epochs));
    // Orders come an epoch late.
    let mut orders = Vec::new();
    let mut settle = |front: &Front, shards: &mut Vec<Shard>, coordinator: &mut Coordinator, packet, last| {
        let mut rolls: Vec<_> = shards.iter_mut().map(Shard::end_epoch).collect();
        shards.iter_mut().zip(&orders).for_each(|(shard, orders)| shard.take_orders(orders));
        orders = coordinator.settle(&mut rolls, front.end(packet));
        if last {
            shards.iter_mut().zip(&orders).for_each(|(shard, orders)| shard.take_orders(orders));
        }
    };
    for (segment, captured) in segments {
        let arrival = front.on_segment(segment);
        let owner = usize::from(arrival.place) % shards.len();
        let marks = captured.map_or(&[][..], |captured| front.read_heads(arrival, segment, captured));
        shards[owner].take(arrival, segment, marks);
        packet = segment.packet;
        if arrival.is_last {
            settle(&front, &mut shards, &mut coordinator, packet, false);
            epochs += 1;
            front.begin_epoch(coordinator.epoch(epochs));
        }
    }
    settle(&front, &mut shards, &mut coordinator, packet, true);
    coordinator.report(shards, &front)
}
