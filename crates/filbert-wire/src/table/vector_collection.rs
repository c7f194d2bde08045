//! `VectorCollection`: documents with a similarity search over their vectors.

use super::service;

service! {
    VectorCollection = 0x24;

    put = 0x01, since 2.8, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: VectorDocument<'a> }
        response<'a> { value: Option<VectorDocument<'a>> }
    }

    put_if_absent = 0x02, since 2.8, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: VectorDocument<'a> }
        response<'a> { value: Option<VectorDocument<'a>> }
    }

    put_all = 0x03, since 2.8, retryable: false, partition: AnyKey {
        request<'a> { name: &'a str, entries: Vec<(Data<'a>, VectorDocument<'a>)> }
        response {}
    }

    get = 0x04, since 2.8, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response<'a> { value: Option<VectorDocument<'a>> }
    }

    remove = 0x05, since 2.8, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response<'a> { value: Option<VectorDocument<'a>> }
    }

    set = 0x06, since 2.8, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: VectorDocument<'a> }
        response {}
    }

    delete = 0x07, since 2.8, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response {}
    }

    search_near_vector = 0x08, since 2.8, retryable: true, partition: None {
        request<'a> { name: &'a str, vectors: Vec<VectorPair<'a>>, options: VectorSearchOptions<'a> }
        response<'a> { result: Vec<VectorSearchResult<'a>> }
    }

    optimize = 0x09, since 2.8, retryable: true, partition: None {
        request<'a> { name: &'a str, index_name: Option<&'a str>, #[since(2.9)] uuid: Option<Uuid> }
        response {}
    }

    clear = 0x0a, since 2.8, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    size = 0x0b, since 2.8, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response { response: i64 }
    }
}
