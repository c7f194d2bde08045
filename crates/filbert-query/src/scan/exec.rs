//! A scan of a map as a leaf of a DataFusion plan.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
    StatisticsArgs,
};
use filbert_functions::ending;
use futures::stream;

use crate::scan::access::Access;
use crate::scan::chunks::reads_columns;
use crate::scan::scanner::{ScanSpec, Scanner};
use crate::scan::view::ViewOfRun;
use crate::turns::is_slice_over;

/// Reads a map.
pub(crate) struct MapScanExec {
    spec: ScanSpec,
    limit: Option<usize>,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MapScanExec {
    /// A scan in `tasks` parts. With a limit, it may end after that many rows.
    pub(crate) fn new(spec: ScanSpec, limit: Option<usize>, tasks: usize, statistics: Statistics) -> Result<Self> {
        let asked: Vec<usize> = (0..spec.width).collect();
        let schema: SchemaRef = Arc::new(spec.schema.project(&asked)?);
        let tasks = match &spec.access {
            Access::Keys(_) | Access::Nothing => 1,
            _ => tasks.max(1),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(tasks),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(MapScanExec {
            spec,
            limit,
            statistics: Arc::new(statistics),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn tasks(&self) -> usize {
        self.properties.partitioning.partition_count()
    }
}

impl fmt::Debug for MapScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapScanExec").field("map", &self.spec.table.name()).finish_non_exhaustive()
    }
}

impl DisplayAs for MapScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = &self.spec;
        write!(f, "MapScan: map={}", spec.table.name())?;
        match &spec.access {
            Access::All if reads_columns(spec) => write!(f, ", access=columns")?,
            Access::All => write!(f, ", access=all entries")?,
            Access::Keys(keys) => write!(f, ", access={} keys", keys.len())?,
            Access::Index { name, .. } => write!(f, ", access=index {name}")?,
            Access::Nothing => write!(f, ", access=nothing")?,
        }
        let names: Vec<&str> =
            spec.schema.fields().iter().take(spec.width).map(|field| field.name().as_str()).collect();
        write!(f, ", columns=[{}]", names.join(", "))?;
        if let Some(filter) = &spec.filter {
            write!(f, ", filter={filter}")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for MapScanExec {
    fn name(&self) -> &'static str {
        "MapScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        match &self.spec.filter {
            Some(filter) => f(filter),
            None => Ok(TreeNodeRecursion::Continue),
        }
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan of a map has no inputs") }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan of a map has no inputs") }
    }

    fn execute(&self, task: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (tasks, count) = (self.tasks(), self.spec.table.map().partition_count());
        let bound = |task: usize| {
            let bound = u64::from(count) * u64::try_from(task).unwrap_or(u64::MAX);
            u32::try_from(bound / u64::try_from(tasks).unwrap_or(1).max(1)).unwrap_or(count)
        };
        let partitions = bound(task)..bound(task + 1);
        let baseline = BaselineMetrics::new(&self.metrics, task);
        let rows_read = MetricBuilder::new(&self.metrics).counter("rows_read", task);
        let partitions_read = MetricBuilder::new(&self.metrics).counter("partitions_read", task);
        let settings = context.session_config();
        let scanner = Scanner::new(self.spec.clone(), partitions, ViewOfRun::of(settings));
        let mut scanner = scanner.in_batches_of(settings.batch_size());
        let mut left = self.limit.unwrap_or(usize::MAX);
        let span = tracing::debug_span!("scan", map = self.spec.table.map().name(), task);
        let mut poll_batch = move |context: &mut Context<'_>| {
            let _entered = span.enter();
            if left == 0 {
                return Poll::Ready(None);
            }
            let _timer = baseline.elapsed_compute().timer();
            let before = scanner.counts();
            let batch = scanner.poll_next_batch(context);
            let after = scanner.counts();
            rows_read.add(after.rows_read - before.rows_read);
            partitions_read.add(after.partitions - before.partitions);
            let batch = match ready!(batch) {
                Ok(Some(batch)) if batch.num_rows() > left => batch.slice(0, left),
                Ok(Some(batch)) => batch,
                Ok(None) => return Poll::Ready(None),
                Err(error) => {
                    left = 0;
                    return Poll::Ready(Some(Err(error)));
                }
            };
            left -= batch.num_rows();
            baseline.record_output(batch.num_rows());
            Poll::Ready(Some(Ok(batch)))
        };
        // A batch without rows after the filter is not passed on, because each passed batch wakes
        // the task above.
        let is_empty = |next: &Option<Result<RecordBatch>>| matches!(next, Some(Ok(batch)) if batch.num_rows() == 0);
        let batches = stream::poll_fn(move |context| {
            loop {
                if is_slice_over() {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let next = ready!(poll_batch(context));
                if !is_empty(&next) {
                    return Poll::Ready(next);
                }
            }
        });
        let stream = RecordBatchStreamAdapter::new(self.schema(), batches);
        Ok(make_cooperative(Box::pin(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        // The optimizer asks once for each operator above, and computes the statistics of all
        // between: with a thousand windows, most of a minute within one rule.
        ending::check()?;
        match args.partition() {
            None => Ok(self.statistics.clone()),
            Some(_) => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let limited = MapScanExec {
            spec: self.spec.clone(),
            limit,
            statistics: self.statistics.clone(),
            properties: self.properties.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        };
        Some(Arc::new(limited))
    }
}
