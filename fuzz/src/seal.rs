//! Checksums made right. No engine guesses a CRC-32, and what a reader does with a file whose sums
//! hold lies behind one.

use tmrun_formats::rings::{ChangeCell, ClockCell, RingsHeader, RunArea, WaitingChanges};

/// Bytes before a payload; its sums are the last eight of them.
const HEAD: usize = 64;

/// The same `.tmrun` with the sums of its header, its chunks and its trailer as they have to be, as
/// far as lengths lead.
pub fn file(data: &[u8]) -> Vec<u8> {
    let mut file = data.to_vec();
    sum(&mut file, 0, HEAD);
    let mut at = HEAD;
    while let Some(head) = file.get(at..at + HEAD) {
        let len = u32::from_le_bytes([head[16], head[17], head[18], head[19]]) as usize;
        let is_chunk = head.starts_with(b"tmCK");
        if let Some(payload) = file.get(at + HEAD..at + HEAD + len).filter(|_| is_chunk) {
            let crc = crc32fast::hash(payload);
            file[at + 56..at + 60].copy_from_slice(&crc.to_le_bytes());
        }
        sum(&mut file, at, HEAD);
        at += HEAD + if is_chunk { len } else { 0 };
    }
    file
}

/// The same rings with the sums of their header, their run area, their clock cells and the changes that
/// wait right.
pub fn rings(mut file: Vec<u8>) -> Vec<u8> {
    sum(&mut file, 0, RingsHeader::SIZE);
    let Ok(header) = RingsHeader::decode(&file) else { return file };
    // The header holds its parts against the file's length.
    let area = header.run_area as usize;
    let len = u32::from_le_bytes([file[area], file[area + 1], file[area + 2], file[area + 3]]);
    let frames = area + RunArea::FRAMES;
    if let Some(frames) = file.get(frames..frames + len as usize) {
        let crc = crc32fast::hash(frames);
        file[area + 4..area + 8].copy_from_slice(&crc.to_le_bytes());
    }
    for cell in 0..ClockCell::COUNT {
        let at = (header.clock + cell * ClockCell::SIZE) as usize;
        sum(&mut file, at, 44);
    }
    let changes = header.changes as usize;
    if changes < RingsHeader::SIZE {
        return file; // they would be written over what was just summed up
    }
    let taken = u64::from_le_bytes(file[changes..changes + 8].try_into().expect("eight bytes"));
    // All but one, so that there is one that is damaged.
    for number in (0..ChangeCell::COUNT as u64 - 1).map(|nth| taken.wrapping_add(nth)) {
        let cell = number % ChangeCell::COUNT as u64 * ChangeCell::SIZE as u64;
        let at = changes + WaitingChanges::CELLS + cell as usize;
        let words = [&number.to_le_bytes(), &file[at..at + 8], &file[at + 16..at + 24]].concat();
        let check = u64::from(crc32fast::hash(&words));
        file[at + 24..at + 32].copy_from_slice(&check.to_le_bytes());
    }
    file
}

/// The last four of `len` bytes become the CRC-32 of those before them.
fn sum(file: &mut [u8], at: usize, len: usize) {
    let Some(bytes) = file.get_mut(at..at + len) else { return };
    let (body, place) = bytes.split_at_mut(len - 4);
    place.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
}
