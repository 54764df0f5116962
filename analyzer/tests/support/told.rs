//! What a trace says, as lines that can be compared.

use tmrun_formats::trace::TraceDocument;

/// What a trace says, but for its times and its ids, which are replaced by names of spans.
pub fn told(document: &TraceDocument<'_>) -> Vec<String> {
    let span = |id: &str| {
        let found = document.spans.iter().find(|span| span.id == id);
        found.map_or("?".to_owned(), |span| span.name.to_string())
    };
    let run = &document.run;
    let mut told = vec![format!(
        "{:?}",
        (&run.correlation_id, &run.entrypoint, run.phase, run.capture_step, run.warmup_steps)
    )];
    told.push(format!(
        "{:?}",
        (&run.device, run.measured_region_device_synchronized, run.timing_mode, &run.tags)
    ));
    told.push(format!("{:?}", (&run.capture_contract, &run.comparison_identity)));
    told.push(format!("{:?}", (document.terminal.outcome, &document.terminal.reason)));
    let mut events = Vec::new();
    for it in &document.spans {
        let parent = it.parent.as_deref().map(span);
        let ended = it.duration_ns.is_some();
        events.push(format!("{:?}", (&it.name, parent, it.kind, it.step, it.measured, ended)));
    }
    for it in &document.ops {
        let place = (span(&it.span_id), &it.op_name, &it.inputs, &it.output, it.duration_ns);
        let bytes = (it.output_dense_bytes, it.input_dense_bytes);
        events.push(format!("{:?}", (place, &it.shape, &it.dtype, &it.device, bytes)));
    }
    for it in &document.tensors {
        let place = (span(&it.span_id), &it.tensor_id, &it.label, it.category);
        let bytes = (it.dense_bytes, it.requires_grad);
        events.push(format!("{:?}", (place, &it.shape, &it.dtype, &it.device, bytes)));
    }
    for it in &document.tensor_stats {
        let place = (span(&it.span_id), &it.label, &it.shape, &it.dtype);
        let numbers = (it.elements, it.non_finite, it.rms, it.abs_max, it.mean);
        events.push(format!("{:?}", (place, numbers)));
    }
    for it in &document.memory {
        let place = (span(&it.span_id), &it.storage_id, &it.tensor_id, &it.op_name, it.action);
        let rest = (it.bytes, &it.shape, &it.dtype, &it.device, it.category);
        events.push(format!("{:?}", (place, rest)));
    }
    for it in &document.device_memory {
        let bytes = (it.used_bytes, it.free_bytes, it.reserved_bytes, it.capacity_bytes);
        events.push(format!("{:?}", (&it.device, bytes)));
    }
    for it in &document.device_intervals {
        let place = (span(&it.span_id), &it.device, &it.stream_id, &it.clock_id, &it.backend);
        events.push(format!("{:?}", (place, it.start_ns, it.duration_ns)));
    }
    for it in &document.gradients {
        events.push(format!("{:?}", (&it.root, &it.key, it.state, it.norm)));
    }
    events.extend(document.edges.iter().map(|edge| format!("{edge:?}")));
    events.sort();
    told.extend(events);
    told
}
