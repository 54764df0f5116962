//! Recorded into a file and read back.

mod support;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use support::{PROBE, recorded};
use tmrun_formats::wire::{Alloc, Gradient, Op, OpInput, Record, Shape, flags};
use tmrun_formats::wire::{Tensor as TensorRecord, groups};
use tmrun_probe_candle::{CandleRecorder, GradientPlan, dense_bytes, storage_id, tensor_id};
use tmrun_probe_core::{Category, GradientState, NameId, TensorId};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn a_tensor_is_recorded_as_candle_shows_it() -> Outcome {
    let weight = Var::zeros((2, 3), DType::BF16, &Device::Cpu)?;
    let view = weight.t()?;
    let scalar = Tensor::new(1u8, &Device::Cpu)?;
    let records = recorded(|to| {
        to.candle_tensor(NameId(7), &weight, Category::PARAMETER);
        to.candle_tensor(NameId(8), &view, Category::OTHER);
        to.candle_tensor(NameId(9), &scalar, Category::OTHER);
    });
    let tensors: Vec<_> = records
        .iter()
        .map(|record| (record.header(), record.payload::<TensorRecord>().unwrap()))
        .collect();
    let [(header, whole), (strided, part), (_, single)] = tensors[..] else {
        panic!("{tensors:?}");
    };
    assert_eq!(header.name, NameId(7));
    assert_eq!((whole.tensor, whole.storage), (tensor_id(&weight), storage_id(&weight)));
    assert_eq!((whole.rank, &whole.dims[..2]), (2, &[2, 3][..]));
    assert_eq!((whole.dtype.name(), whole.category), (Some("bf16"), Category::PARAMETER));
    let layout = flags::TENSOR_LAYOUT | flags::TENSOR_CONTIGUOUS;
    assert_eq!(header.flags & layout, layout);
    assert_ne!(header.flags & flags::TENSOR_REQUIRES_GRAD, 0);

    assert_eq!((part.storage, &part.dims[..2]), (whole.storage, &[3, 2][..]));
    assert_eq!(strided.flags & layout, flags::TENSOR_LAYOUT);
    assert_ne!(strided.flags & flags::TENSOR_REQUIRES_GRAD, 0, "on the way to a gradient");

    assert_eq!((single.rank, single.dims), (0, [0; 5]));
    assert_eq!(whole.device, single.device);
    assert_ne!(whole.device.0, 0);
    Ok(())
}

#[test]
fn an_operation_has_its_output_and_inputs() -> Outcome {
    let x = Tensor::zeros((5, 4), DType::F32, &Device::Cpu)?;
    let w = Tensor::zeros((4, 3), DType::F32, &Device::Cpu)?;
    let y = x.matmul(&w)?;
    let many = [&x; 75];
    let records = recorded(|to| {
        let start = to.now();
        to.candle_op(NameId(1), NameId(2), start..to.now(), &y, &[&x, &w]);
        to.candle_op(NameId(1), NameId(2), start..to.now(), &y, &many);
    });
    let groups: Vec<&[Record]> = groups(&records).collect();
    let [two, many] = groups[..] else { panic!("{groups:?}") };
    let op = two[0].payload::<Op>().unwrap();
    assert_eq!((op.op, op.output, op.inputs), (NameId(2), tensor_id(&y), 2));
    assert_eq!(op.input_bytes, dense_bytes(&x) + dense_bytes(&w));
    assert!(op.end >= two[0].header().ticks);
    let shape = two[1].payload::<Shape>().unwrap();
    assert_eq!(shape.used(two[1].header().flags), [5, 3]);
    let inputs = two[2].payload::<OpInput>().unwrap().tensors;
    assert_eq!(inputs, [tensor_id(&x), tensor_id(&w), TensorId(0), TensorId(0), TensorId(0)]);

    assert_eq!(two[0].header().flags & flags::TRUNCATED, 0);
    assert_ne!(many[0].header().flags & flags::TRUNCATED, 0);
    assert_eq!(many[0].payload::<Op>().unwrap().inputs, 70);
    Ok(())
}

#[test]
fn an_allocation_is_of_the_whole_storage() -> Outcome {
    let whole = Tensor::zeros((10, 10), DType::F64, &Device::Cpu)?;
    let part = whole.narrow(0, 2, 1)?;
    let records = recorded(|to| {
        assert!(to.candle_alloc(NameId(1), NameId(2), &part, Category::OTHER));
    });
    let alloc = records[0].payload::<Alloc>().unwrap();
    assert_eq!((alloc.bytes, alloc.storage), (800, storage_id(&whole)));
    assert_eq!((dense_bytes(&part), alloc.tensor), (80, tensor_id(&part)));
    Ok(())
}

/// Every state, with the norm where there is one.
#[test]
fn gradients_are_recorded_by_name_in_order() -> Outcome {
    let device = &Device::Cpu;
    let gradient = |values: [f64; 2], dtype| Tensor::new(&values, device)?.to_dtype(dtype);
    let cases = [
        ("a.present", Some(gradient([3.0, -4.0], DType::F32)?), Some(5.0)),
        ("b.missing", None, None),
        ("c.zero", Some(gradient([0.0, -0.0], DType::F32)?), Some(0.0)),
        ("d.nan", Some(gradient([1.0, f64::NAN], DType::F32)?), None),
        ("e.infinite", Some(gradient([f64::NEG_INFINITY, 1.0], DType::F16)?), None),
        ("f.subnormal", Some(gradient([1e-45, 0.0], DType::F32)?), Some(f32::from_bits(1).into())),
        ("g.smallest", Some(gradient([5e-324, 0.0], DType::F64)?), Some(5e-324)),
        ("h.norm overflows", Some(gradient([f64::MAX, f64::MAX], DType::F64)?), None),
        ("i.view", Some(gradient([7.0, 1.0], DType::F32)?.narrow(0, 1, 1)?), Some(1.0)),
    ];
    let variables: Vec<(&str, Var)> = cases
        .iter()
        .map(|(name, ..)| Ok((*name, Var::zeros(2, DType::F32, device)?)))
        .collect::<candle_core::Result<_>>()?;
    let mut store: GradStore = Tensor::zeros((), DType::F32, device)?.backward()?;
    for ((_, variable), (_, gradient, _)) in variables.iter().zip(&cases) {
        if let Some(gradient) = gradient {
            store.insert(variable, gradient.clone());
        }
    }
    // In any order: the plan sorts.
    let plan = GradientPlan::from_named_vars(
        &PROBE,
        "model",
        variables.iter().rev().map(|(name, variable)| (*name, variable)),
    );
    assert_eq!(plan.names().collect::<Vec<_>>(), cases.each_ref().map(|(name, ..)| *name));

    let mut counts = None;
    let records = recorded(|to| counts = plan.record(&to, &store).ok());
    let counts = counts.unwrap();
    assert_eq!((counts.present, counts.missing, counts.zero, counts.non_finite), (4, 1, 1, 3));
    assert_eq!(records.len(), cases.len());
    for (record, (name, _, norm)) in records.iter().zip(&cases) {
        let gradient = record.payload::<Gradient>().unwrap();
        assert_eq!(record.header().name, PROBE.name(name));
        assert_eq!(gradient.root, PROBE.name("model"));
        let expected = match *name {
            "b.missing" => GradientState::MISSING,
            "c.zero" => GradientState::ZERO,
            "d.nan" | "e.infinite" | "h.norm overflows" => GradientState::NON_FINITE,
            _ => GradientState::PRESENT,
        };
        assert_eq!(gradient.state, expected, "{name}");
        let given = record.header().flags & flags::GRADIENT_NORM != 0;
        assert_eq!(given.then_some(gradient.norm), *norm, "{name}");
    }
    Ok(())
}

#[test]
fn a_plan_outlives_optimizer_steps_and_keeps_nothing_alive() -> Outcome {
    let variable = Var::ones(3, DType::F32, &Device::Cpu)?;
    let plan = GradientPlan::from_named_vars(&PROBE, "model", [("w", &variable)]);
    variable.set(&(variable.as_tensor() * 2.0)?)?;
    let gradients = variable.sqr()?.sum_all()?.backward()?;
    let mut counts = None;
    recorded(|to| counts = plan.record(&to, &gradients).ok());
    assert_eq!(counts.map(|counts| counts.present), Some(1));
    Ok(())
}
