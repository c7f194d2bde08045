// Every map operation of the client that needs neither locks nor listeners.

package e2e

import (
	"bytes"
	"reflect"
	"sort"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/predicate"
	"github.com/hazelcast/hazelcast-go-client/types"
)

// equal compares what a call returned to what was expected, and fails on the call's error.
func equal(t *testing.T, expected, found any, err error) {
	t.Helper()
	must(t, err)
	if !reflect.DeepEqual(expected, found) {
		t.Fatalf("expected %#v, found %#v", expected, found)
	}
}

func fill(t *testing.T, m *hazelcast.Map, count int) {
	t.Helper()
	entries := make([]types.Entry, 0, count)
	for i := 0; i < count; i++ {
		entries = append(entries, types.NewEntry(int64(i), int64(i*i)))
	}
	must(t, m.PutAll(ctx, entries...))
}

func TestPutSetAndGet(t *testing.T) {
	m := ownMap(t)
	old, err := m.Put(ctx, "a", int64(1))
	equal(t, nil, old, err)
	old, err = m.Put(ctx, "a", int64(2))
	equal(t, int64(1), old, err)
	must(t, m.Set(ctx, "a", int64(3)))
	found, err := m.Get(ctx, "a")
	equal(t, int64(3), found, err)
	found, err = m.Get(ctx, "b")
	equal(t, nil, found, err)
}

func TestPutIfAbsentKeepsTheFirstValue(t *testing.T) {
	m := ownMap(t)
	old, err := m.PutIfAbsent(ctx, "a", int64(1))
	equal(t, nil, old, err)
	old, err = m.PutIfAbsent(ctx, "a", int64(2))
	equal(t, int64(1), old, err)
}

func TestReplaceNeedsAnEntry(t *testing.T) {
	m := ownMap(t)
	old, err := m.Replace(ctx, "a", int64(1))
	equal(t, nil, old, err)
	must(t, m.Set(ctx, "a", int64(1)))
	old, err = m.Replace(ctx, "a", int64(2))
	equal(t, int64(1), old, err)
	done, err := m.ReplaceIfSame(ctx, "a", int64(7), int64(3))
	equal(t, false, done, err)
	done, err = m.ReplaceIfSame(ctx, "a", int64(2), int64(3))
	equal(t, true, done, err)
}

func TestRemoveDeleteAndRemoveIfSame(t *testing.T) {
	m := ownMap(t)
	must(t, m.Set(ctx, "a", int64(1)))
	done, err := m.RemoveIfSame(ctx, "a", int64(2))
	equal(t, false, done, err)
	done, err = m.RemoveIfSame(ctx, "a", int64(1))
	equal(t, true, done, err)
	must(t, m.Set(ctx, "a", int64(1)))
	old, err := m.Remove(ctx, "a")
	equal(t, int64(1), old, err)
	old, err = m.Remove(ctx, "a")
	equal(t, nil, old, err)
	must(t, m.Set(ctx, "a", int64(1)))
	must(t, m.Delete(ctx, "a"))
	there, err := m.ContainsKey(ctx, "a")
	equal(t, false, there, err)
}

func TestTryPutAndTryRemoveWorkOnAFreeKey(t *testing.T) {
	m := ownMap(t)
	done, err := m.TryPut(ctx, "a", int64(1))
	equal(t, true, done, err)
	done, err = m.TryPutWithTimeout(ctx, "a", int64(2), time.Second)
	equal(t, true, done, err)
	removed, err := m.TryRemoveWithTimeout(ctx, "a", time.Second)
	equal(t, true, removed, err)
	removed, err = m.TryRemove(ctx, "a")
	equal(t, false, removed, err)
}

func TestEntriesWithTimeToLiveOrMaxIdleGo(t *testing.T) {
	m := ownMap(t)
	second := time.Second
	writes := map[string]func() error{
		"put ttl":           func() error { _, err := m.PutWithTTL(ctx, "put ttl", int64(1), second); return err },
		"put max idle":      func() error { _, err := m.PutWithMaxIdle(ctx, "put max idle", int64(1), second); return err },
		"put both":          func() error { _, err := m.PutWithTTLAndMaxIdle(ctx, "put both", int64(1), second, second); return err },
		"put if absent ttl": func() error { _, err := m.PutIfAbsentWithTTL(ctx, "put if absent ttl", int64(1), second); return err },
		"put if absent both": func() error {
			_, err := m.PutIfAbsentWithTTLAndMaxIdle(ctx, "put if absent both", int64(1), second, second)
			return err
		},
		"put transient ttl":      func() error { return m.PutTransientWithTTL(ctx, "put transient ttl", int64(1), second) },
		"put transient max idle": func() error { return m.PutTransientWithMaxIdle(ctx, "put transient max idle", int64(1), second) },
		"put transient both": func() error {
			return m.PutTransientWithTTLAndMaxIdle(ctx, "put transient both", int64(1), second, second)
		},
		"set ttl":  func() error { return m.SetWithTTL(ctx, "set ttl", int64(1), second) },
		"set both": func() error { return m.SetWithTTLAndMaxIdle(ctx, "set both", int64(1), second, second) },
	}
	must(t, m.PutTransient(ctx, "stays", int64(1)))
	for name, write := range writes {
		t.Run(name, func(t *testing.T) { must(t, write()) })
	}
	eventually(t, "one entry is left", func() bool {
		size, err := m.Size(ctx)
		return err == nil && size == 1
	})
}

func TestSetTtlGivesAnEntryANewEnd(t *testing.T) {
	m := ownMap(t)
	must(t, m.Set(ctx, "a", int64(1)))
	affected, err := m.SetTTLAffected(ctx, "a", time.Second)
	equal(t, true, affected, err)
	affected, err = m.SetTTLAffected(ctx, "nothing here", time.Second)
	equal(t, false, affected, err)
	eventually(t, "the entry is gone", func() bool {
		there, err := m.ContainsKey(ctx, "a")
		return err == nil && !there
	})
}

func TestPutAllAndGetAllMoveManyEntries(t *testing.T) {
	m := ownMap(t)
	fill(t, m, 2_000)
	keys := make([]any, 0, 2_001)
	for i := 0; i <= 2_000; i++ {
		keys = append(keys, int64(i))
	}
	entries, err := m.GetAll(ctx, keys...)
	must(t, err)
	if len(entries) != 2_000 {
		t.Fatalf("expected 2000 entries, found %d", len(entries))
	}
	for _, entry := range entries {
		if entry.Value != entry.Key.(int64)*entry.Key.(int64) {
			t.Fatalf("wrong entry %v", entry)
		}
	}
}

func TestWholeMapReadsReturnEverything(t *testing.T) {
	m := ownMap(t)
	fill(t, m, 500)
	keys, err := m.GetKeySet(ctx)
	must(t, err)
	values, err := m.GetValues(ctx)
	must(t, err)
	entries, err := m.GetEntrySet(ctx)
	must(t, err)
	if len(keys) != 500 || len(values) != 500 || len(entries) != 500 {
		t.Fatalf("expected 500 of each, found %d, %d, %d", len(keys), len(values), len(entries))
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].(int64) < keys[j].(int64) })
	for i, key := range keys {
		if key != int64(i) {
			t.Fatalf("expected key %d, found %v", i, key)
		}
	}
	there, err := m.ContainsValue(ctx, int64(499*499))
	equal(t, true, there, err)
	there, err = m.ContainsValue(ctx, int64(-1))
	equal(t, false, there, err)
}

func TestSizeIsEmptyClearEvictAndEvictAllAgree(t *testing.T) {
	m := ownMap(t)
	empty, err := m.IsEmpty(ctx)
	equal(t, true, empty, err)
	fill(t, m, 100)
	size, err := m.Size(ctx)
	equal(t, 100, size, err)
	evicted, err := m.Evict(ctx, int64(5))
	equal(t, true, evicted, err)
	must(t, m.EvictAll(ctx))
	empty, err = m.IsEmpty(ctx)
	equal(t, true, empty, err)
	fill(t, m, 100)
	must(t, m.Clear(ctx))
	size, err = m.Size(ctx)
	equal(t, 0, size, err)
	fill(t, m, 100)
	must(t, m.RemoveAll(ctx, predicate.True()))
	size, err = m.Size(ctx)
	equal(t, 0, size, err)
	must(t, m.Flush(ctx))
}

func TestEntryViewCountsHitsAndVersions(t *testing.T) {
	m := ownMap(t)
	_, err := m.Put(ctx, "a", int64(1))
	must(t, err)
	_, err = m.Get(ctx, "a")
	must(t, err)
	_, err = m.Put(ctx, "a", int64(2))
	must(t, err)
	view, err := m.GetEntryView(ctx, "a")
	must(t, err)
	if view.Value != int64(2) || view.Version != 1 || view.Hits < 1 {
		t.Fatalf("unexpected view %+v", view)
	}
}

func TestValuesOfAnySizeComeBackUnchanged(t *testing.T) {
	m := ownMap(t)
	largest := 20_000_000
	if members > 1 {
		// In a cluster, a change has at most 8 MiB.
		largest = 7_000_000
	}
	for _, size := range []int{0, 1, 100_000, largest} {
		value := bytes.Repeat([]byte{7}, size)
		must(t, m.Set(ctx, "k", value))
		found, err := m.Get(ctx, "k")
		must(t, err)
		if !bytes.Equal(value, found.([]byte)) {
			t.Fatalf("%d bytes came back changed", size)
		}
	}
}

func TestAClientWithoutSmartRoutingReachesEveryKey(t *testing.T) {
	config := clientConfig(shared.address)
	config.Cluster.Unisocket = true
	m := mapOf(t, connect(t, config))
	fill(t, m, 300)
	for i := int64(0); i < 300; i++ {
		found, err := m.Get(ctx, i)
		equal(t, i*i, found, err)
	}
}

func TestDestroyForgetsTheEntries(t *testing.T) {
	client := connect(t, clientConfig(shared.address))
	m := mapOf(t, client)
	fill(t, m, 10)
	must(t, m.Destroy(ctx))
	size, err := mapOf(t, client).Size(ctx)
	equal(t, 0, size, err)
}
