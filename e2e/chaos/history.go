// What clients did and were told, operation by operation.

package main

import (
	"sync"
	"time"
)

// operationLimit bounds how long a client waits for an answer; after that the outcome is unknown.
const operationLimit = 20 * time.Second

// op is an operation as it is asked for. A worker reads it as JSON.
type op struct {
	Kind     string `json:"kind"`
	Map      string `json:"map,omitempty"`
	Key      string `json:"key"`
	Value    string `json:"value,omitempty"`
	Expected string `json:"expected,omitempty"`
	// WaitMillis is how long a lock is waited for.
	WaitMillis int `json:"wait_ms,omitempty"`
}

// outcome says what is known of an operation.
type outcome string

const (
	// acknowledged: it was made, and this is its answer.
	acknowledged outcome = "acknowledged"
	// refused: it was not made, and never will be.
	refused outcome = "refused"
	// unknown: it was made, or will be, or never.
	unknown outcome = "unknown"
)

// result is what a client was told. A worker writes it as JSON.
type result struct {
	Outcome outcome `json:"outcome"`
	// Value is the value that was read or replaced; empty when there was none.
	Value string `json:"value,omitempty"`
	// Truth answers replaceIfSame, tryLock and unlock, and tells of sqlUpdate whether it changed a row.
	Truth bool `json:"truth,omitempty"`
	// Error is the kind of error, where there was one.
	Error string `json:"error,omitempty"`
}

// record is one operation of a history. Times are since the history's beginning.
type record struct {
	client   int
	op       op
	result   result
	call     time.Duration
	returned time.Duration
}

// took is how long the client waited, beyond what it asked for.
func (r record) took() time.Duration {
	return r.returned - r.call - time.Duration(r.op.WaitMillis)*time.Millisecond
}

// history is all that several clients did.
type history struct {
	begun   time.Time
	lock    sync.Mutex
	records []record
	// names of clients, by number.
	names []string
	// observers are those whose waiting is no figure: witnesses, which ask members that must not answer, and who reads everything in the end.
	observers map[int]bool
}

func newHistory() *history { return &history{begun: time.Now(), observers: map[int]bool{}} }

// now is the time since the beginning.
func (h *history) now() time.Duration { return time.Since(h.begun) }

// client gives a client its number.
func (h *history) client(name string) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.names = append(h.names, name)
	return len(h.names) - 1
}

// observer gives one whose waiting is no figure its number.
func (h *history) observer(name string) int {
	number := h.client(name)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.observers[number] = true
	return number
}

// make has a client make an operation, and records it.
func (h *history) make(number int, c client, o op) result {
	call := h.now()
	r := c.do(o)
	returned := h.now()
	h.lock.Lock()
	defer h.lock.Unlock()
	h.records = append(h.records, record{client: number, op: o, result: r, call: call, returned: returned})
	return r
}

// since is a copy of the records from that number on.
func (h *history) since(from int) []record {
	h.lock.Lock()
	defer h.lock.Unlock()
	return append([]record{}, h.records[from:]...)
}

// ofClients are those of the records that are not of observers.
func (h *history) ofClients(records []record) []record {
	h.lock.Lock()
	defer h.lock.Unlock()
	var others []record
	for _, r := range records {
		if !h.observers[r.client] {
			others = append(others, r)
		}
	}
	return others
}

// written is what was acknowledged to be in a map of which each key is written once.
func (h *history) written(ledger string) map[string]string {
	written := map[string]string{}
	for _, r := range h.since(0) {
		if r.op.Map == ledger && r.op.Kind == "set" && r.result.Outcome == acknowledged {
			written[r.op.Key] = r.op.Value
		}
	}
	return written
}
