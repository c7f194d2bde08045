//! `Experimental`: messages without a guarantee of compatibility.

use super::service;

service! {
    Experimental = 0xfd;

    pipeline_submit = 0x01, since 2.7, retryable: true, partition: None {
        request<'a> {
            job_name: Option<&'a str>, pipeline_definition: &'a str, resource_bundle: Option<&'a [u8]>,
            resource_bundle_checksum: i32,
        }
        response { job_id: i64 }
    }
}
