// The models find what must be found: short histories that are right, and such that are not.

package main

import (
	"fmt"
	"testing"
	"time"
)

// at is an operation of a history that took place between two moments.
func at(client int, from, to int, kind, value string, r result) record {
	if r.Outcome == "" {
		r.Outcome = acknowledged
	}
	o := op{Kind: kind, Map: "m", Key: "k", Value: value}
	if kind == "replaceIfSame" {
		_, _ = fmt.Sscanf(value, "%s %s", &o.Expected, &o.Value)
	}
	return record{client: client, op: o, result: r, call: time.Duration(from), returned: time.Duration(to)}
}

func violations(t *testing.T, records ...record) int {
	t.Helper()
	h := &history{records: records, names: []string{"a", "b", "c"}}
	findings, undecided, err := check(h, t.TempDir())
	if err != nil || undecided != 0 {
		t.Fatalf("%d undecided, %v", undecided, err)
	}
	return len(findings)
}

func TestHistoriesThatAreRight(t *testing.T) {
	lost := result{Outcome: unknown}
	histories := map[string][]record{
		"one after the other": {
			at(0, 0, 1, "put", "1", result{}), at(1, 2, 3, "putIfAbsent", "2", result{Value: "1"}),
			at(1, 4, 5, "replaceIfSame", "1 3", result{Truth: true}), at(0, 6, 7, "remove", "", result{Value: "3"}),
			at(1, 8, 9, "get", "", result{}),
		},
		"an unknown put that happened late": {
			at(0, 0, 1, "set", "1", lost), at(1, 2, 3, "get", "", result{}), at(1, 4, 5, "get", "", result{Value: "1"}),
		},
		"an unknown put that never happened": {at(0, 0, 1, "set", "1", lost), at(1, 2, 3, "get", "", result{})},
		"a refused put": {
			at(0, 0, 1, "set", "1", result{Outcome: refused}), at(1, 2, 3, "get", "", result{}),
		},
		"SQL changes the value that is there": {
			at(0, 0, 1, "set", "1", result{}), at(1, 2, 3, "sqlUpdate", "2", result{Truth: true}), at(0, 4, 5, "get", "", result{Value: "2"}),
		},
		"SQL finds no value": {at(0, 0, 1, "sqlUpdate", "1", result{}), at(1, 2, 3, "get", "", result{})},
		"an unknown update that was made late": {
			at(0, 0, 1, "sqlUpdate", "2", lost), at(1, 2, 3, "set", "1", result{}), at(1, 4, 5, "get", "", result{Value: "1"}),
			at(1, 6, 7, "get", "", result{Value: "2"}),
		},
		"an unknown update that found nothing": {
			at(0, 0, 9, "sqlUpdate", "2", lost), at(1, 2, 3, "set", "1", result{}), at(1, 4, 5, "get", "", result{Value: "1"}),
		},
		"a lock that goes round": {
			at(0, 0, 1, "tryLock", "", result{Truth: true}), at(1, 2, 3, "tryLock", "", result{}),
			at(0, 4, 5, "unlock", "", result{Truth: true}), at(1, 6, 7, "tryLock", "", result{Truth: true}),
		},
	}
	for name, records := range histories {
		if found := violations(t, records...); found != 0 {
			t.Errorf("%s: %d violations", name, found)
		}
	}
}

func TestHistoriesThatAreWrong(t *testing.T) {
	histories := map[string][]record{
		"an acknowledged write is lost": {at(0, 0, 1, "set", "1", result{}), at(1, 2, 3, "get", "", result{})},
		"a read goes back in time": {
			at(0, 0, 1, "set", "1", result{}), at(0, 2, 9, "set", "2", result{}),
			at(1, 3, 4, "get", "", result{Value: "2"}), at(2, 5, 6, "get", "", result{Value: "1"}),
		},
		"a refused write was made": {
			at(0, 0, 1, "set", "1", result{Outcome: refused}), at(1, 2, 3, "get", "", result{Value: "1"}),
		},
		"two replace the same value": {
			at(0, 0, 1, "set", "1", result{}), at(0, 2, 5, "replaceIfSame", "1 2", result{Truth: true}),
			at(1, 2, 5, "replaceIfSame", "1 3", result{Truth: true}),
		},
		"SQL makes a value where none was": {at(0, 0, 1, "sqlUpdate", "1", result{Outcome: unknown}), at(1, 2, 3, "get", "", result{Value: "1"})},
		"SQL does not find a value that is there": {
			at(0, 0, 1, "set", "1", result{}), at(1, 2, 3, "sqlUpdate", "2", result{}), at(0, 4, 5, "get", "", result{Value: "1"}),
		},
		"an update by SQL is lost": {
			at(0, 0, 1, "set", "1", result{}), at(1, 2, 3, "sqlUpdate", "2", result{Truth: true}), at(0, 4, 5, "get", "", result{Value: "1"}),
		},
		"an update by SQL is made twice": {
			at(0, 0, 1, "set", "1", result{}), at(1, 2, 9, "sqlUpdate", "2", result{Truth: true}), at(0, 3, 4, "get", "", result{Value: "2"}),
			at(2, 5, 6, "set", "3", result{}), at(0, 7, 8, "get", "", result{Value: "2"}),
		},
		"two hold one lock": {
			at(0, 0, 1, "tryLock", "", result{Truth: true}), at(1, 2, 3, "tryLock", "", result{Truth: true}),
		},
		"a lock is forgotten": {
			at(0, 0, 1, "tryLock", "", result{Truth: true}), at(0, 2, 3, "unlock", "", result{}),
		},
	}
	for name, records := range histories {
		if found := violations(t, records...); found != 1 {
			t.Errorf("%s: %d violations, expected one", name, found)
		}
	}
}
