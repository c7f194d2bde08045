//! `Jet`: jobs of the stream engine.

use super::service;

service! {
    Jet = 0xfe;

    submit_job = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> {
            job_id: i64, dag: Data<'a>, job_config: Option<Data<'a>>,
            #[since(2.3)] light_job_coordinator: Option<Uuid>,
        }
        response {}
    }

    terminate_job = 0x02, since 2.0, retryable: false, partition: None {
        request { job_id: i64, terminate_mode: i32, #[since(2.3)] light_job_coordinator: Option<Uuid> }
        response {}
    }

    get_job_status = 0x03, since 2.0, retryable: true, partition: None {
        request { job_id: i64 }
        response { response: i32 }
    }

    get_job_ids = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { #[since(2.3)] only_name: Option<&'a str>, #[since(2.3)] only_job_id: i64 }
        response<'a> { #[since(2.3)] response: Data<'a> }
    }

    join_submitted_job = 0x05, since 2.0, retryable: true, partition: None {
        request { job_id: i64, #[since(2.3)] light_job_coordinator: Option<Uuid> }
        response {}
    }

    get_job_submission_time = 0x07, since 2.0, retryable: true, partition: None {
        request { job_id: i64, #[since(2.3)] light_job_coordinator: Option<Uuid> }
        response { response: i64 }
    }

    get_job_config = 0x08, since 2.0, retryable: true, partition: None {
        request { job_id: i64, #[since(2.4)] light_job_coordinator: Option<Uuid> }
        response<'a> { response: Data<'a> }
    }

    resume_job = 0x09, since 2.0, retryable: false, partition: None {
        request { job_id: i64 }
        response {}
    }

    export_snapshot = 0x0a, since 2.0, retryable: false, partition: None {
        request<'a> { job_id: i64, name: &'a str, cancel_job: bool }
        response {}
    }

    get_job_summary_list = 0x0b, since 2.0, retryable: true, partition: None {
        request {}
        response<'a> { response: Data<'a> }
    }

    exists_distributed_object = 0x0c, since 2.0, retryable: true, partition: None {
        request<'a> { service_name: &'a str, object_name: &'a str }
        response { response: bool }
    }

    get_job_metrics = 0x0d, since 2.0, retryable: true, partition: None {
        request { job_id: i64 }
        response<'a> { response: Data<'a> }
    }

    get_job_suspension_cause = 0x0e, since 2.0, retryable: true, partition: None {
        request { job_id: i64 }
        response<'a> { response: Data<'a> }
    }

    get_job_and_sql_summary_list = 0x0f, since 2.5, retryable: true, partition: None {
        request {}
        response<'a> { response: Vec<JobAndSqlSummary<'a>> }
    }

    is_job_user_cancelled = 0x10, since 2.6, retryable: true, partition: None {
        request { job_id: i64 }
        response { response: bool }
    }

    upload_job_meta_data = 0x11, since 2.6, retryable: true, partition: None {
        request<'a> {
            session_id: Uuid, jar_on_member: bool, file_name: &'a str, sha256_hex: &'a str,
            snapshot_name: Option<&'a str>, job_name: Option<&'a str>, main_class: Option<&'a str>,
            job_parameters: Vec<&'a str>,
        }
        response {}
    }

    upload_job_multipart = 0x12, since 2.6, retryable: true, partition: None {
        request<'a> {
            session_id: Uuid, current_part_number: i32, total_part_number: i32, part_data: &'a [u8], part_size: i32,
            sha256_hex: &'a str,
        }
        response {}
    }

    add_job_status_listener = 0x13, since 2.6, retryable: false, partition: None {
        request { job_id: i64, light_job_coordinator: Option<Uuid>, local_only: bool }
        response { response: Option<Uuid> }
        event JobStatusEvent = 0x02, since 2.6 <'a> {
            job_id: i64, previous_status: i32, new_status: i32, description: Option<&'a str>, user_requested: bool,
        }
    }

    remove_job_status_listener = 0x14, since 2.6, retryable: true, partition: None {
        request { job_id: i64, registration_id: Uuid }
        response { response: bool }
    }

    update_job_config = 0x15, since 2.6, retryable: true, partition: None {
        request<'a> { job_id: i64, delta_config: Data<'a> }
        response<'a> { updated_config: Data<'a> }
    }
}
