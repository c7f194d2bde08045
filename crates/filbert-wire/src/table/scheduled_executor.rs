//! `ScheduledExecutor`: delayed and periodic tasks.

use super::service;

service! {
    ScheduledExecutor = 0x1a;

    shutdown = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { scheduler_name: &'a str, member_uuid: Uuid }
        response {}
    }

    submit_to_partition = 0x02, since 2.0, retryable: true, partition: TaskName {
        request<'a> {
            scheduler_name: &'a str, kind: u8, task_name: &'a str, task: Data<'a>, initial_delay_in_millis: i64,
            period_in_millis: i64, #[since(2.1)] auto_disposable: bool,
        }
        response {}
    }

    submit_to_member = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> {
            scheduler_name: &'a str, member_uuid: Uuid, kind: u8, task_name: &'a str, task: Data<'a>,
            initial_delay_in_millis: i64, period_in_millis: i64, #[since(2.1)] auto_disposable: bool,
        }
        response {}
    }

    get_all_scheduled_futures = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str }
        response<'a> { handlers: Vec<ScheduledTaskHandler<'a>> }
    }

    get_stats_from_partition = 0x05, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str }
        response {
            last_idle_time_nanos: i64, total_idle_time_nanos: i64, total_runs: i64, total_run_time_nanos: i64,
            last_run_duration_nanos: i64,
        }
    }

    get_stats_from_member = 0x06, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid }
        response {
            last_idle_time_nanos: i64, total_idle_time_nanos: i64, total_runs: i64, total_run_time_nanos: i64,
            last_run_duration_nanos: i64,
        }
    }

    get_delay_from_partition = 0x07, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str }
        response { response: i64 }
    }

    get_delay_from_member = 0x08, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid }
        response { response: i64 }
    }

    cancel_from_partition = 0x09, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, may_interrupt_if_running: bool }
        response { response: bool }
    }

    cancel_from_member = 0x0a, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid, may_interrupt_if_running: bool }
        response { response: bool }
    }

    is_cancelled_from_partition = 0x0b, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str }
        response { response: bool }
    }

    is_cancelled_from_member = 0x0c, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid }
        response { response: bool }
    }

    is_done_from_partition = 0x0d, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str }
        response { response: bool }
    }

    is_done_from_member = 0x0e, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid }
        response { response: bool }
    }

    get_result_from_partition = 0x0f, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str }
        response<'a> { response: Option<Data<'a>> }
    }

    get_result_from_member = 0x10, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid }
        response<'a> { response: Option<Data<'a>> }
    }

    dispose_from_partition = 0x11, since 2.0, retryable: true, partition: TaskName {
        request<'a> { scheduler_name: &'a str, task_name: &'a str }
        response {}
    }

    dispose_from_member = 0x12, since 2.0, retryable: true, partition: None {
        request<'a> { scheduler_name: &'a str, task_name: &'a str, member_uuid: Uuid }
        response {}
    }
}
