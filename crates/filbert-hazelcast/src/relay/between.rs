//! Messages that members send only to each other: an initial frame and two more frames.

use filbert_wire::{
    CorrelationId, MessageId,
    frame::{Writer, flags},
};

/// Encodes a message with this id and without a partition.
pub(crate) fn between_members(id: MessageId, correlation: CorrelationId, frames: [&[u8]; 2]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.frame_with(flags::UNFRAGMENTED, |out| {
        out.extend_from_slice(&id.0.to_le_bytes());
        out.extend_from_slice(&correlation.0.to_le_bytes());
        out.extend_from_slice(&(-1_i32).to_le_bytes());
    });
    for frame in frames {
        writer.frame(0, frame);
    }
    writer.finish();
    out
}
