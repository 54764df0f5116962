//! Room for lifetimes is made once, at set-up. (It is the process's: alone in its binary.)

use candle_core::{DType, Device, Result, Tensor};
use tmrun_probe_candle::{
    CandleRecorder, LifetimesInUse, hold_lifetimes, lifetimes_without_epoch, storage_id,
};
use tmrun_probe_core::{AutoClock, Category, NameId, Probe};

#[test]
fn what_finds_no_room_has_no_epoch_and_is_counted() -> Result<()> {
    static PROBE: Probe<AutoClock, 1, 1024> = Probe::new();
    let lane = PROBE.view().claim("test").expect("the first lane");
    let recorder = lane.recorder();
    assert_eq!(hold_lifetimes(1), Ok(()));
    assert_eq!(hold_lifetimes(1000), Err(LifetimesInUse));

    let tensors: Vec<_> =
        (0..9).map(|_| Tensor::zeros(4, DType::F32, &Device::Cpu)).collect::<Result<_>>()?;
    for tensor in &tensors {
        assert!(recorder.candle_alloc(NameId(1), NameId::NONE, tensor, Category::OTHER));
    }
    let has_epoch = |tensor: &&Tensor| storage_id(tensor).0 >> 48 != 0;
    assert_eq!(tensors.iter().filter(has_epoch).count(), 8);
    assert_eq!(lifetimes_without_epoch(), 1);
    recorder.candle_free(NameId(1), NameId::NONE, &tensors[0], Category::OTHER);
    recorder.candle_alloc(NameId(1), NameId::NONE, &tensors[8], Category::OTHER);
    assert!(has_epoch(&&tensors[8]), "there is room again");
    Ok(())
}
