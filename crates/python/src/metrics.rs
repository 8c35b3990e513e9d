//! Converts counters and times to dictionaries.

use penstock_engine::query::{QueryMetrics, Rows};
use penstock_engine::{EngineMetrics, Latency, OperatorReport, TaskMetrics, WorkerMetrics};
use penstock_memory::coordinator::Counters;
use penstock_memory::platform::Usage;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList};

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Converts latencies, in milliseconds.
pub(crate) fn latency<'py>(py: Python<'py>, latency: &Latency) -> PyResult<Bound<'py, PyDict>> {
    let Latency { count, mean_ns, p50_ns, p95_ns, p99_ns, p999_ns, max_ns } = *latency;
    let times = PyDict::new(py);
    times.set_item("count", count)?;
    times.set_item("mean_ms", mean_ns / 1e6)?;
    for (name, ns) in
        [("p50_ms", p50_ns), ("p95_ms", p95_ns), ("p99_ms", p99_ns), ("p999_ms", p999_ns), ("max_ms", max_ns)]
    {
        times.set_item(name, ns as f64 / 1e6)?;
    }
    Ok(times)
}

/// Converts the profile of each operator.
pub(crate) fn operators<'py>(py: Python<'py>, reports: &[OperatorReport]) -> PyResult<Bound<'py, PyList>> {
    let operators = PyList::empty(py);
    for OperatorReport { name, profile } in reports {
        let report = PyDict::new(py);
        report.set_item("name", name)?;
        report.set_item("rows_in", profile.rows_in)?;
        report.set_item("rows_out", profile.rows_out)?;
        report.set_item("runs", profile.runs)?;
        report.set_item("seconds", seconds(profile.busy_ns))?;
        operators.append(report)?;
    }
    Ok(operators)
}

fn tasks<'py>(py: Python<'py>, metrics: &[TaskMetrics]) -> PyResult<Bound<'py, PyList>> {
    let tasks = PyList::empty(py);
    for metrics in metrics {
        let TaskMetrics {
            name,
            pending_rows,
            signals,
            runs,
            busy_ns,
            blocked_ns,
            time_share,
            cost_ns,
            selectivity,
        } = metrics;
        let task = PyDict::new(py);
        task.set_item("name", name)?;
        task.set_item("pending_rows", pending_rows)?;
        task.set_item("signals", signals)?;
        task.set_item("runs", runs)?;
        task.set_item("seconds", seconds(*busy_ns))?;
        task.set_item("blocked_seconds", seconds(*blocked_ns))?;
        task.set_item("time_share", time_share)?;
        task.set_item("cost_ns", cost_ns)?;
        task.set_item("selectivity", selectivity)?;
        tasks.append(task)?;
    }
    Ok(tasks)
}

/// Converts the metrics of a query or a shared source.
pub(crate) fn query<'py>(
    py: Python<'py>,
    metrics: &QueryMetrics,
    blocked_by: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let Rows {
        rows_in,
        copied,
        contributed,
        filtered,
        late,
        late_results,
        shed,
        rejected,
        rejected_results,
        rows_out,
    } = metrics.rows;
    let rows = [
        ("rows_in", rows_in),
        ("rows_copied", copied),
        ("rows_contributed", contributed),
        ("rows_filtered", filtered),
        ("rows_late", late),
        ("late_results", late_results),
        ("rows_shed", shed),
        ("rows_rejected", rejected),
        ("rejected_results", rejected_results),
        ("rows_out", rows_out),
        ("batches_in", metrics.batches_in),
    ];
    let all = rows.into_py_dict(py)?;
    all.set_item("late_by", metrics.late_by)?;
    all.set_item("blocked_by", blocked_by)?;
    all.set_item("seconds", metrics.seconds)?;
    all.set_item("rows_per_second", metrics.rows_per_second)?;
    all.set_item("backlog_rows", metrics.backlog_rows)?;
    all.set_item("slipped_seconds", seconds(metrics.slipped_ns))?;
    all.set_item("idle_sources", metrics.idle_sources)?;
    all.set_item("idles", metrics.idles)?;
    all.set_item("clock_closings", metrics.clock_closings)?;
    all.set_item("event_latency", latency(py, &metrics.event_latency)?)?;
    all.set_item("output_latency", latency(py, &metrics.output_latency)?)?;
    all.set_item("operators", operators(py, &metrics.operators)?)?;
    all.set_item("tasks", tasks(py, &metrics.tasks)?)?;
    Ok(all)
}

/// Converts the counters of memory.
pub(crate) fn memory<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    // Destructured in full: the compiler reports a counter that is missing here.
    let Counters {
        budget_bytes,
        used_bytes,
        pinned_bytes,
        exported_bytes,
        state_bytes,
        chunks_live,
        chunks_spare,
        chunks_pooled,
        chunks_exported,
        chunks_requested,
        inline_allocations,
        background_allocations,
        recycles,
        trims,
        backpressure_ns,
        peak_used_bytes,
    } = *counters;
    [
        ("budget_bytes", budget_bytes),
        ("used_bytes", used_bytes),
        ("peak_used_bytes", peak_used_bytes),
        ("pinned_bytes", pinned_bytes),
        ("exported_bytes", exported_bytes),
        ("state_bytes", state_bytes),
        ("chunks_live", chunks_live),
        ("chunks_spare", chunks_spare),
        ("chunks_pooled", chunks_pooled),
        ("chunks_exported", chunks_exported),
        ("chunks_requested", chunks_requested),
        ("inline_allocations", inline_allocations),
        ("background_allocations", background_allocations),
        ("recycles", recycles),
        ("trims", trims),
        ("backpressure_ns", backpressure_ns),
    ]
    .into_py_dict(py)
}

fn workers<'py>(py: Python<'py>, metrics: &[WorkerMetrics]) -> PyResult<Bound<'py, PyList>> {
    let workers = PyList::empty(py);
    for WorkerMetrics { runs, busy_ns, parked_ns, parks, overhead_ns } in metrics {
        let worker = PyDict::new(py);
        worker.set_item("runs", runs)?;
        worker.set_item("busy_seconds", seconds(*busy_ns))?;
        worker.set_item("parked_seconds", seconds(*parked_ns))?;
        worker.set_item("overhead_seconds", seconds(*overhead_ns))?;
        worker.set_item("parks", parks)?;
        workers.append(worker)?;
    }
    Ok(workers)
}

/// Converts engine-wide metrics.
pub(crate) fn engine<'py>(py: Python<'py>, metrics: &EngineMetrics) -> PyResult<Bound<'py, PyDict>> {
    let EngineMetrics {
        seconds: alive,
        queries,
        tasks,
        workers: all_workers,
        task_threads,
        epochs,
        planning_ns,
        rolling_ns,
        memory: counters,
        process: Usage { cpu_ns, minor_faults, major_faults, resident_bytes },
    } = metrics;
    let process = PyDict::new(py);
    process.set_item("cpu_seconds", seconds(*cpu_ns))?;
    process.set_item("minor_faults", minor_faults)?;
    process.set_item("major_faults", major_faults)?;
    process.set_item("resident_bytes", resident_bytes)?;
    let all = PyDict::new(py);
    all.set_item("seconds", alive)?;
    all.set_item("queries", queries)?;
    all.set_item("tasks", tasks)?;
    all.set_item("task_threads", task_threads)?;
    all.set_item("workers", workers(py, all_workers)?)?;
    all.set_item("scheduling_share", metrics.scheduling_share())?;
    all.set_item("epochs", epochs)?;
    all.set_item("planning_seconds", seconds(planning_ns + rolling_ns))?;
    all.set_item("memory", memory(py, counters)?)?;
    all.set_item("process", process)?;
    Ok(all)
}
